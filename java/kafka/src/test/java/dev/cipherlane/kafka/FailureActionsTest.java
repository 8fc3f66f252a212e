package dev.cipherlane.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.ErrorCode;
import dev.cipherlane.testing.KafkaClients;
import dev.cipherlane.testing.KeyServiceProcess;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.UnaryOperator;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The failure actions skip and mark, and what no action may touch. */
@ExtendWith(Cluster.class)
class FailureActionsTest {
  /** A stored record that is wrong, and what the client says of it. */
  @SuppressWarnings("ArrayRecordComponent") // Never compared.
  record Bad(ErrorCode code, byte[] value) {}

  @TempDir Path folder;

  private final String topic = "encrypted." + UUID.randomUUID();

  static byte[] text(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static String string(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }

  static KafkaConsumer<byte[], byte[]> consumer(String action, Object... more) {
    return new KafkaConsumer<>(
        KafkaClients.with(
            KafkaClients.with(
                Clients.consuming(Cluster.keyService().settings("consumer")),
                "cipherlane.failure.action",
                action),
            more));
  }

  /** Every way in which ConsumingTest breaks a record of a topic, and one moved from elsewhere. */
  @SuppressWarnings("unchecked") // The third argument is what badRecords() puts there.
  static List<Bad> bad(byte[] good) {
    List<Bad> bad = new ArrayList<>();
    ConsumingTest.badRecords()
        .forEach(
            arguments -> {
              Object[] of = arguments.get();
              bad.add(
                  new Bad((ErrorCode) of[1], ((UnaryOperator<byte[]>) of[2]).apply(good.clone())));
            });
    byte[] moved = ConsumingTest.envelope("shared." + UUID.randomUUID(), text("moved"));
    bad.add(new Bad(ErrorCode.SCOPE_MISMATCH, moved));
    return bad;
  }

  /** Good, bad, good, bad, ..., all with a forged header, over three partitions; ends with good. */
  private List<Bad> writeMixture() throws Exception {
    Clients.create(topic, 3);
    try (KafkaProducer<byte[], byte[]> encrypting = Clients.producer();
        KafkaProducer<byte[], byte[]> plain = Clients.plainProducer()) {
      Clients.send(encrypting, new ProducerRecord<>(topic, 0, text("key"), text("good 0")));
      List<Bad> bad = bad(Clients.stored(topic, 1).get(0));
      for (int i = 0; i < bad.size(); i++) {
        Clients.send(plain, forged(i % 3, "bad " + i, bad.get(i).value()));
        Clients.send(encrypting, forged(i % 3, "key", text("good " + (i + 1))));
      }
      return bad;
    }
  }

  private ProducerRecord<byte[], byte[]> forged(int partition, String key, byte[] value) {
    ProducerRecord<byte[], byte[]> record =
        new ProducerRecord<>(topic, partition, 77L, text(key), value);
    record.headers().add("own", text("header")).add("cipherlane.error", text("forged"));
    return record;
  }

  private static List<String> good(int count) {
    List<String> values = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      values.add("good " + i);
    }
    return values;
  }

  @Test
  void skippedRecordsAreLeftOutAndCountedAndThePositionGoesOn() throws Exception { // CL-KAF-021
    List<Bad> bad = writeMixture();
    try (KafkaConsumer<byte[], byte[]> consumer = consumer("skip", "client.id", topic)) {
      List<ConsumerRecord<byte[], byte[]>> records =
          KafkaClients.read(consumer, topic, bad.size() + 1);
      assertThat(records)
          .extracting(record -> string(record.value()))
          .containsExactlyInAnyOrderElementsOf(good(bad.size() + 1));
      long end = 0;
      for (TopicPartition partition : consumer.assignment()) {
        end += consumer.position(partition);
      }
      assertThat(end).isEqualTo(2L * bad.size() + 1);
      assertThat(Jmx.consumer(topic, "skipped-total")).isEqualTo(bad.size());
      long rejected = bad.stream().filter(b -> b.code() == ErrorCode.PLAINTEXT_REJECTED).count();
      assertThat(Jmx.consumer(topic + ",code=plaintext-rejected", "failures-total"))
          .isEqualTo(rejected);
    }
  }

  @Test
  void whereAllRecordsAreSkippedTheBatchIsEmptyAndMayBeCommitted() { // CL-KAF-012 CL-KAF-021
    byte[] good = ConsumingTest.envelope("shared." + UUID.randomUUID(), text("moved"));
    try (KafkaProducer<byte[], byte[]> plain = Clients.plainProducer();
        KafkaConsumer<byte[], byte[]> consumer = consumer("skip")) {
      for (int i = 0; i < 5; i++) {
        Clients.send(plain, new ProducerRecord<>(topic, good));
      }
      TopicPartition partition = new TopicPartition(topic, 0);
      consumer.assign(List.of(partition));
      while (consumer.position(partition) < 5) {
        assertThat(consumer.poll(java.time.Duration.ofMillis(200)).isEmpty()).isTrue();
      }
      consumer.commitSync();
      assertThat(consumer.committed(java.util.Set.of(partition)).get(partition))
          .extracting(OffsetAndMetadata::offset)
          .isEqualTo(5L);
    }
  }

  @Test
  void markedRecordsAreHandedOverAsTheyWereRead() throws Exception { // CL-KAF-024 CL-KAF-025
    List<Bad> bad = writeMixture();
    try (KafkaConsumer<byte[], byte[]> consumer = consumer("mark", "client.id", topic)) {
      List<ConsumerRecord<byte[], byte[]>> records =
          KafkaClients.read(consumer, topic, 2 * bad.size() + 1);
      assertThat(records).hasSize(2 * bad.size() + 1);
      for (ConsumerRecord<byte[], byte[]> record : records) {
        assertMarked(record, bad);
      }
      assertThat(Jmx.consumer(topic, "marked-total"))
          .isEqualTo(bad.stream().filter(b -> b.code() != ErrorCode.PLAINTEXT_REJECTED).count());
    }
  }

  private static void assertMarked(ConsumerRecord<byte[], byte[]> record, List<Bad> bad) {
    List<String> words = new ArrayList<>();
    for (Header header : record.headers().headers("cipherlane.error")) {
      words.add(string(header.value()));
    }
    if (string(record.key()).equals("key")) {
      assertThat(string(record.value())).startsWith("good ");
      assertThat(words).isEmpty();
      return;
    }
    Bad expected = bad.get(Integer.parseInt(string(record.key()).substring("bad ".length())));
    assertThat(record.headers().lastHeader("own").value()).isEqualTo(text("header"));
    assertThat(record.timestamp()).isEqualTo(77L);
    if (expected.code() == ErrorCode.PLAINTEXT_REJECTED) {
      assertThat(words).isEmpty();
      assertThat(catchThrowableOfType(RecordDecryptionException.class, record::value).code())
          .isEqualTo(expected.code());
    } else {
      assertThat(words).containsExactly(expected.code().code());
      assertThat(record.value()).isEqualTo(expected.value());
      assertThat(record.serializedValueSize()).isEqualTo(expected.value().length);
    }
  }

  @Test
  void forgedMarksAreRemovedFromTombstonesToo() { // CL-KAF-024
    try (KafkaProducer<byte[], byte[]> plain = Clients.plainProducer();
        KafkaConsumer<byte[], byte[]> consumer = consumer("mark")) {
      Clients.send(plain, forged(0, "key", null));
      ConsumerRecord<byte[], byte[]> record = KafkaClients.read(consumer, topic, 1).get(0);
      assertThat(record.value()).isNull();
      assertThat(record.headers().lastHeader("cipherlane.error")).isNull();
      assertThat(record.headers().lastHeader("own")).isNotNull();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "skip, hidden., not-authorized",
    "mark, hidden., not-authorized",
    "dead-letter, hidden., not-authorized",
    "skip, unknown., topic-unknown",
    "mark, forbidden., topic-forbidden",
    "dead-letter, unknown., topic-unknown"
  })
  void whatConcernsAllRecordsOfATopicFails(String action, String prefix, String code) {
    // CL-KAF-020
    String refused = prefix + UUID.randomUUID();
    byte[] stored = ConsumingTest.envelope(topic, text("value"));
    try (KafkaProducer<byte[], byte[]> plain = Clients.plainProducer();
        KafkaConsumer<byte[], byte[]> consumer = consumer(action)) {
      Clients.send(plain, new ProducerRecord<>(refused, stored));
      ConsumerRecord<byte[], byte[]> record = KafkaClients.read(consumer, refused, 1).get(0);
      assertThat(catchThrowableOfType(RecordDecryptionException.class, record::value).code().code())
          .isEqualTo(code);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"skip", "mark", "dead-letter"})
  void outageLosesNothing(String action) throws Exception { // CL-KAF-020
    try (KeyServiceProcess service = KeyServiceProcess.start(folder, Cluster.POLICY);
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(Clients.producing(service.settings("producer")));
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(
                KafkaClients.with(
                    Clients.consuming(service.settings("consumer")),
                    Map.of(
                        "cipherlane.failure.action",
                        action,
                        "cipherlane.keys.deadline.ms",
                        "1500")))) {
      Clients.send(producer, new ProducerRecord<>(topic, text("value")));
      service.kill();
      ConsumerRecord<byte[], byte[]> record = KafkaClients.read(consumer, topic, 1).get(0);
      assertThat(catchThrowableOfType(RecordDecryptionException.class, record::value).code())
          .isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
      assertThat(record.headers().lastHeader("cipherlane.error")).isNull();
    }
  }
}
