package dev.cipherlane.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.ErrorCode;
import dev.cipherlane.testing.KafkaClients;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Producers with StringSerializer: the placeholder and the partitioner. CL-KAF-001 CL-KAF-004 */
@ExtendWith(Cluster.class)
class StringProducerTest {
  private final String topic = "encrypted." + UUID.randomUUID();
  private final Canaries canaries = new Canaries();

  @AfterEach
  void noCanaryIsStored() throws IOException {
    canaries.assertNoneStored();
  }

  private static Map<String, Object> settings(Object... more) {
    return KafkaClients.with(
        KafkaClients.with(
            Clients.producing(Cluster.keyService().settings("producer")),
            "key.serializer",
            StringSerializer.class.getName(),
            "value.serializer",
            StringSerializer.class.getName(),
            "partitioner.class",
            EnvelopePartitioner.class.getName()),
        more);
  }

  /** As kafka-verifiable-producer does: serializers given as instances. */
  private static KafkaProducer<String, String> producer(Map<String, Object> settings) {
    return new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
  }

  @ParameterizedTest
  @CsvSource({"none, 16384", "gzip, 16384", "none, 300", "zstd, 0"})
  void envelopesAreStored(String compression, int batch) throws Exception {
    // Small batches make kafka-clients 3 ask for a partition twice.
    Clients.create(topic, 3);
    List<String> values = IntStream.range(0, 300).mapToObj(i -> canaries.text() + " é€𝄞").toList();
    try (KafkaProducer<String, String> producer =
        producer(settings("compression.type", compression, "batch.size", batch, "linger.ms", 5))) {
      Clients.send(
          producer,
          values.stream().map(v -> new ProducerRecord<String, String>(topic, v)).toList());
    }
    assertThat(Clients.stored(topic, 300))
        .hasSize(300)
        .allSatisfy(value -> assertThat(value).startsWith(0xC1, 0x9E, 1, 0));
    try (KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      List<ConsumerRecord<byte[], byte[]>> records = KafkaClients.read(consumer, topic, 300);
      assertThat(records)
          .extracting(record -> new String(record.value(), StandardCharsets.UTF_8))
          .containsExactlyInAnyOrderElementsOf(values);
      Set<Integer> partitions = new HashSet<>();
      records.forEach(record -> partitions.add(record.partition()));
      assertThat(partitions).hasSize(3);
    }
  }

  @Test
  void partitionerMayBeAskedTwiceForOneRecordAndNotForAnother() {
    var interceptor = new EncryptingProducerInterceptor<String, String>();
    interceptor.configure(settings());
    String text = canaries.text();
    ProducerRecord<String, String> sent = interceptor.onSend(new ProducerRecord<>(topic, text));
    interceptor.close();
    assertThat(sent.value()).matches("\\x00{%d}".formatted(text.length() + 60));
    byte[] bytes = sent.value().getBytes(StandardCharsets.UTF_8);
    org.apache.kafka.common.Cluster cluster = oneBroker();
    try (EnvelopePartitioner partitioner = new EnvelopePartitioner()) {
      partitioner.partition(topic, null, null, sent.value(), bytes, cluster);
      byte[] first = bytes.clone();
      assertThat(first).startsWith(0xC1, 0x9E, 1, 0);
      partitioner.partition(topic, null, null, sent.value(), bytes, cluster);
      assertThat(bytes).isEqualTo(first);
      Object same = new String(sent.value());
      byte[] other = sent.value().getBytes(StandardCharsets.UTF_8);
      for (Runnable wrong :
          List.<Runnable>of(
              () -> partitioner.partition(topic, null, null, same, other, cluster),
              () -> partitioner.partition("other", null, null, sent.value(), other, cluster),
              () -> partitioner.partition(topic, null, null, sent.value(), new byte[1], cluster),
              () -> partitioner.partition(topic, null, null, sent.value(), null, cluster))) {
        assertThatThrownBy(wrong::run).isInstanceOf(RecordRefusedException.class);
      }
      assertThat(other).containsOnly(0);
    }
  }

  private org.apache.kafka.common.Cluster oneBroker() {
    Node node = new Node(1, "127.0.0.1", 1);
    PartitionInfo partition = new PartitionInfo(topic, 0, node, new Node[0], new Node[0]);
    return new org.apache.kafka.common.Cluster(
        "cluster", List.of(node), List.of(partition), Set.of(), Set.of());
  }

  @Test
  void keysGoWhereKafkaSendsThem() throws Exception {
    Clients.create(topic, 5);
    try (KafkaProducer<String, String> producer = producer(settings());
        KafkaProducer<byte[], byte[]> usual = Clients.plainProducer()) {
      for (int i = 0; i < 20; i++) {
        byte[] key = ("key " + i).getBytes(StandardCharsets.UTF_8);
        RecordMetadata ours =
            Clients.send(producer, new ProducerRecord<>(topic, "key " + i, canaries.text()));
        RecordMetadata theirs =
            Clients.send(usual, new ProducerRecord<>(topic, key, new byte[] {1}));
        assertThat(ours.partition()).isEqualTo(theirs.partition());
      }
    }
  }

  @Test
  void nullEmptyAndClearValuesPass() {
    String clear = "clear." + UUID.randomUUID();
    try (KafkaProducer<String, String> producer = producer(settings())) {
      Clients.send(producer, new ProducerRecord<>(topic, "key", null));
      Clients.send(producer, new ProducerRecord<>(topic, ""));
      Clients.send(producer, new ProducerRecord<>(clear, ""));
      Clients.send(producer, new ProducerRecord<>(clear, "text"));
    }
    List<byte[]> stored = Clients.stored(topic, 2);
    assertThat(stored.get(0)).isNull();
    assertThat(stored.get(1)).hasSize(60);
    assertThat(Clients.stored(clear, 2))
        .containsExactly(new byte[0], "text".getBytes(StandardCharsets.UTF_8));
  }

  @Test
  void recordsThatNameTheirPartitionAreRefused() {
    try (KafkaProducer<String, String> producer = producer(settings())) {
      RecordRefusedException error =
          catchThrowableOfType(
              RecordRefusedException.class,
              () -> Clients.send(producer, new ProducerRecord<>(topic, 0, "k", canaries.text())));
      assertThat(error.code()).isEqualTo(ErrorCode.CONFIGURATION_INVALID);
      assertThat(error).hasMessageContaining(topic);
    }
  }

  @Test
  void whatIsRefusedIsNotSent() {
    Map<String, Object> stranger =
        KafkaClients.with(settings(), Cluster.keyService().settings("stranger"));
    try (KafkaProducer<String, String> producer = producer(stranger)) {
      RecordRefusedException error =
          catchThrowableOfType(
              RecordRefusedException.class,
              () -> Clients.send(producer, new ProducerRecord<>(topic, canaries.text())));
      assertThat(error.code()).isEqualTo(ErrorCode.NOT_AUTHORIZED);
    }
  }

  @Test
  void partitionerWithoutTheInterceptorRefusesAll() {
    try (KafkaProducer<String, String> producer = producer(settings("interceptor.classes", ""))) {
      for (int i = 0; i < 3; i++) {
        assertThatThrownBy(
                () -> Clients.send(producer, new ProducerRecord<>(topic, canaries.text())))
            .isInstanceOf(RecordRefusedException.class)
            .hasMessageContaining("EncryptingProducerInterceptor");
      }
      Clients.send(producer, new ProducerRecord<>(topic, "key", null));
    }
  }

  /** Puts another value in the place of the placeholder. */
  public static final class Replacing implements ProducerInterceptor<String, String> {
    private static final List<String> VALUES = new ArrayList<>();

    @Override
    public ProducerRecord<String, String> onSend(ProducerRecord<String, String> record) {
      // As long as the placeholder, and equal to it, but another string.
      String other = VALUES.isEmpty() ? new String(record.value()) : VALUES.get(0);
      return new ProducerRecord<>(record.topic(), other);
    }

    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception error) {
      // Nothing to do.
    }

    @Override
    public void close() {
      // Holds nothing.
    }

    @Override
    public void configure(Map<String, ?> settings) {
      // Has none.
    }
  }

  @Test
  void valueOfALaterInterceptorIsRefused() {
    String both = EncryptingProducerInterceptor.class.getName() + "," + Replacing.class.getName();
    try (KafkaProducer<String, String> producer = producer(settings("interceptor.classes", both))) {
      for (int i = 0; i < 2; i++) {
        assertThatThrownBy(
                () -> Clients.send(producer, new ProducerRecord<>(topic, canaries.text())))
            .isInstanceOf(RecordRefusedException.class);
        Replacing.VALUES.add(canaries.text());
      }
    }
  }

  @ParameterizedTest
  @CsvSource({
    "partitioner.class, org.apache.kafka.clients.producer.RoundRobinPartitioner",
    "partitioner.class, ",
    "value.serializer.encoding, UTF-16",
    "serializer.encoding, ISO-8859-1"
  })
  void settingsThatDoNotFitAreRefused(String name, String value) {
    Map<String, Object> settings = settings(name, value);
    assertThatThrownBy(() -> producer(settings).close())
        .isInstanceOf(KafkaException.class)
        .hasStackTraceContaining("configuration-invalid")
        .hasStackTraceContaining(name);
  }
}
