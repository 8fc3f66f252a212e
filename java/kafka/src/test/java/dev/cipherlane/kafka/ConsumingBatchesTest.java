package dev.cipherlane.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.ErrorCode;
import dev.cipherlane.TestKeys;
import dev.cipherlane.testing.KafkaClients;
import dev.cipherlane.testing.KeyServiceProcess;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the consumer's interceptor does with batches, offsets, settings and outages. */
@ExtendWith(Cluster.class)
class ConsumingBatchesTest {
  @TempDir Path folder;

  private final String topic = "encrypted." + UUID.randomUUID();

  private static byte[] text(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @Test
  void severalPartitionsInOnePollKeepTheirNextOffsets() throws Exception { // CL-KAF-012
    Clients.create(topic, 4);
    try (KafkaProducer<byte[], byte[]> producer = Clients.producer()) {
      for (int i = 0; i < 40; i++) {
        Clients.send(producer, new ProducerRecord<>(topic, i % 4, null, text("value " + i)));
      }
    }
    try (KafkaConsumer<byte[], byte[]> consumer = Clients.consumer();
        KafkaConsumer<byte[], byte[]> plain = Clients.plainConsumer()) {
      ConsumerRecords<byte[], byte[]> batch = pollAll(consumer, 40);
      assertThat(batch.partitions()).hasSize(4);
      for (TopicPartition partition : batch.partitions()) {
        assertThat(batch.records(partition))
            .extracting(record -> new String(record.value(), StandardCharsets.UTF_8))
            .containsExactlyElementsOf(expected(partition.partition()));
      }
      assertThat(nextOffsets(batch)).isEqualTo(nextOffsets(pollAll(plain, 40)));
      consumer.commitSync();
      assertThat(consumer.committed(batch.partitions()).values())
          .extracting(OffsetAndMetadata::offset)
          .containsOnly(10L);
    }
  }

  private static List<String> expected(int partition) {
    List<String> values = new ArrayList<>();
    for (int i = partition; i < 40; i += 4) {
      values.add("value " + i);
    }
    return values;
  }

  /** Polls until one poll brings everything: the topic holds it already. */
  private ConsumerRecords<byte[], byte[]> pollAll(
      KafkaConsumer<byte[], byte[]> consumer, int count) {
    KafkaClients.assign(consumer, topic);
    for (int attempt = 0; attempt < 20; attempt++) {
      ConsumerRecords<byte[], byte[]> batch = consumer.poll(Duration.ofSeconds(5));
      if (batch.count() == count) {
        return batch;
      }
      consumer.seekToBeginning(consumer.assignment());
    }
    throw new AssertionError("no poll brought all " + count + " records");
  }

  /** What only kafka-clients 4 has. */
  private static Object nextOffsets(ConsumerRecords<?, ?> batch) throws Exception {
    try {
      Object offsets = ConsumerRecords.class.getMethod("nextOffsets").invoke(batch);
      assertThat((Map<?, ?>) offsets).hasSize(4);
      return offsets;
    } catch (NoSuchMethodException e) {
      return "kafka-clients 3";
    }
  }

  @Test
  void applicationThatCommitsWhatItProcessedLosesNothing() {
    byte[] good = ConsumingTest.envelope(topic, text("first"));
    try (KafkaProducer<byte[], byte[]> producer = Clients.plainProducer()) {
      Clients.send(
          producer, new ProducerRecord<>(topic, ConsumingTest.set(good, 50, good[50] ^ 1)));
    }
    TopicPartition partition = new TopicPartition(topic, 0);
    try (KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      for (ConsumerRecord<byte[], byte[]> record : KafkaClients.read(consumer, topic, 2)) {
        try {
          assertThat(record.value()).isNotNull();
        } catch (RecordDecryptionException e) {
          break;
        }
        consumer.commitSync(Map.of(partition, new OffsetAndMetadata(record.offset() + 1)));
      }
      assertThat(consumer.committed(java.util.Set.of(partition)).get(partition).offset())
          .isEqualTo(1L);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "org.apache.kafka.common.serialization.StringDeserializer",
        "org.apache.kafka.common.serialization.ByteBufferDeserializer"
      })
  void deserializersOfOtherTypesAreRefused(String deserializer) { // CL-KAF-004
    Map<String, Object> settings =
        KafkaClients.with(
            Clients.consuming(Cluster.keyService().settings("consumer")),
            "value.deserializer",
            deserializer);
    assertThatThrownBy(() -> new KafkaConsumer<>(settings).close())
        .hasStackTraceContaining("configuration-invalid")
        .hasStackTraceContaining("value.deserializer");
  }

  @Test
  void allKidsOfAPollAreAskedForTogether() throws Exception { // CL-KEY-010
    byte[] good = ConsumingTest.envelope(topic, text("first"));
    try (KafkaProducer<byte[], byte[]> producer = Clients.plainProducer()) {
      List<ProducerRecord<byte[], byte[]>> foreign = new ArrayList<>();
      for (int i = 0; i < 100; i++) {
        byte[] copy = good.clone();
        TestKeys.kid(TestKeys.bytes()).write(copy, 4);
        foreign.add(new ProducerRecord<>(topic, copy));
      }
      Clients.send(producer, foreign);
    }
    long before = requests();
    try (KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      assertThat(pollAll(consumer, 101).count()).isEqualTo(101);
    }
    // One call for each poll, of which pollAll may have needed a few; without it there are 101.
    assertThat(requests() - before).isBetween(1L, 3L);
  }

  /** Counts the calls for decryption keys of this test's topic in the audit log. */
  private long requests() throws Exception {
    try (Stream<String> lines = java.nio.file.Files.lines(Cluster.keyService().auditFile())) {
      return lines
          .filter(line -> line.contains(topic) && line.contains("decrypt"))
          .map(line -> line.replaceAll(".*\"request_id\":\"([^\"]*)\".*", "$1"))
          .distinct()
          .count();
    }
  }

  @Test
  void outageIsToldAndReadingAgainLaterWorks() throws Exception { // CL-KAF-010 CL-ERR-003
    try (KeyServiceProcess service = KeyServiceProcess.start(folder, Cluster.POLICY);
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(Clients.producing(service.settings("producer")));
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(Clients.consuming(service.settings("consumer")))) {
      Clients.send(producer, new ProducerRecord<>(topic, text("value")));
      service.kill();
      ConsumerRecord<byte[], byte[]> record = KafkaClients.read(consumer, topic, 1).get(0);
      assertThat(catchThrowableOfType(RecordDecryptionException.class, record::value).code())
          .isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
      service.start();
      Thread.sleep(200);
      consumer.seekToBeginning(consumer.assignment());
      assertThat(consumer.poll(Duration.ofSeconds(10)).iterator().next().value())
          .isEqualTo(text("value"));
    }
  }
}
