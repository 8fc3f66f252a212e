package dev.cipherlane.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.ErrorCode;
import dev.cipherlane.testing.KafkaClients;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.BytesSerializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the producer's interceptor does with records and settings. */
@ExtendWith(Cluster.class)
class ProducingTest {
  private final String topic = "encrypted." + UUID.randomUUID();
  private final Canaries canaries = new Canaries();

  @AfterEach
  void noCanaryIsStored() throws IOException {
    canaries.assertNoneStored();
  }

  @Test
  void recordArrivesAsItWasButForItsValue() { // CL-KAF-002 CL-KAF-003
    byte[] key = {1, 2, 3};
    byte[] value = canaries.value();
    byte[] before = value.clone();
    ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, 0, 1234L, key, value);
    record.headers().add("a", new byte[] {1}).add("a", new byte[] {2}).add("b", null);
    try (KafkaProducer<byte[], byte[]> producer = Clients.producer()) {
      Clients.send(producer, record);
      assertThat(record.value()).isSameAs(value).isEqualTo(before);
      assertThat(record.headers()).hasSize(3);
      record.headers().add("still", writable());
    }
    try (KafkaConsumer<byte[], byte[]> consumer = Clients.plainConsumer()) {
      ConsumerRecord<byte[], byte[]> read = KafkaClients.read(consumer, topic, 1).get(0);
      assertThat(read.partition()).isZero();
      assertThat(read.timestamp()).isEqualTo(1234L);
      assertThat(read.key()).isEqualTo(key);
      assertThat(read.headers())
          .containsExactly(
              new RecordHeader("a", new byte[] {1}),
              new RecordHeader("a", new byte[] {2}),
              new RecordHeader("b", (byte[]) null));
      assertThat(read.value()).hasSize(before.length + 60).startsWith(0xC1, 0x9E);
    }
  }

  private static byte[] writable() {
    return new byte[0];
  }

  @Test
  void recordSentTwiceArrivesTwice() { // CL-KAF-002
    ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, canaries.value());
    record.headers().add("a", new byte[] {1});
    try (KafkaProducer<byte[], byte[]> producer = Clients.producer()) {
      Clients.send(producer, record);
      Clients.send(producer, record);
    }
    List<byte[]> stored = Clients.stored(topic, 2);
    assertThat(stored).hasSize(2);
    assertThat(stored.get(0)).isNotEqualTo(stored.get(1));
  }

  @Test
  void recordWhoseHeadersAreReadOnlyArrives() { // CL-KAF-002
    ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, canaries.value());
    ((org.apache.kafka.common.header.internals.RecordHeaders) record.headers()).setReadOnly();
    try (KafkaProducer<byte[], byte[]> producer = Clients.producer()) {
      Clients.send(producer, record);
    }
    assertThat(Clients.stored(topic, 1)).hasSize(1);
  }

  @Test
  void nullStaysNullAndEmptyIsEncrypted() { // CL-ENV-040
    try (KafkaProducer<byte[], byte[]> producer = Clients.producer()) {
      Clients.send(producer, new ProducerRecord<>(topic, new byte[] {1}, null));
      Clients.send(producer, new ProducerRecord<>(topic, new byte[0]));
    }
    List<byte[]> stored = Clients.stored(topic, 2);
    assertThat(stored.get(0)).isNull();
    assertThat(stored.get(1)).hasSize(60);
  }

  @Test
  void tombstoneOfAForbiddenTopicIsRefused() { // CL-ENV-040
    try (KafkaProducer<byte[], byte[]> producer = Clients.producer()) {
      RecordRefusedException error =
          catchThrowableOfType(
              RecordRefusedException.class,
              () ->
                  Clients.send(
                      producer, new ProducerRecord<>("forbidden.a", new byte[] {1}, null)));
      assertThat(error.code()).isEqualTo(ErrorCode.TOPIC_FORBIDDEN);
    }
  }

  @Test
  void clearTopicsStayClear() { // CL-ENV-041
    String clear = "clear." + topic;
    byte[] value = {1, 2, 3};
    try (KafkaProducer<byte[], byte[]> producer = Clients.producer()) {
      Clients.send(producer, new ProducerRecord<>(clear, value));
    }
    assertThat(Clients.stored(clear, 1)).containsExactly(value);
  }

  @Test
  void valueOfAnotherTypeIsRefused() { // CL-KAF-005
    try (KafkaProducer<byte[], Object> producer =
        new KafkaProducer<>(Clients.producing(Cluster.keyService().settings("producer")))) {
      for (Object value : List.of(canaries.text(), new Object[] {canaries.text()}, 7)) {
        RecordRefusedException error =
            catchThrowableOfType(
                RecordRefusedException.class,
                () -> Clients.send(producer, new ProducerRecord<>(topic, value)));
        assertThat(error.code()).isEqualTo(ErrorCode.VALUE_TYPE);
        assertThat(error).hasMessageContaining(topic);
        assertThat(error.getMessage()).doesNotContain("plaintext");
      }
    }
  }

  @Test
  void valueOverTheLimitIsRefused() { // CL-ENV-042
    Map<String, Object> settings =
        KafkaClients.with(
            Clients.producing(Cluster.keyService().settings("producer")),
            "cipherlane.max.plaintext.bytes",
            "100");
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
      Clients.send(producer, new ProducerRecord<>(topic, new byte[100]));
      RecordRefusedException error =
          catchThrowableOfType(
              RecordRefusedException.class,
              () -> Clients.send(producer, new ProducerRecord<>(topic, new byte[101])));
      assertThat(error.code()).isEqualTo(ErrorCode.PLAINTEXT_TOO_LONG);
    }
  }

  /** Looks at what it gets, and fails, as interceptors of tracing libraries may. */
  public static final class Curious implements ProducerInterceptor<Object, Object> {
    @Override
    public ProducerRecord<Object, Object> onSend(ProducerRecord<Object, Object> record) {
      return new ProducerRecord<>(record.topic(), record.value());
    }

    @Override
    public void onAcknowledgement(RecordMetadata metadata, Exception error) {
      throw new IllegalStateException("on purpose");
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

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void refusalHoldsBesideOtherInterceptors(boolean first) {
    String ours = EncryptingProducerInterceptor.class.getName();
    String other = Curious.class.getName();
    Map<String, Object> settings =
        KafkaClients.with(
            Clients.producing(Cluster.keyService().settings("stranger")),
            "interceptor.classes",
            first ? ours + "," + other : other + "," + ours);
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
      RecordRefusedException error =
          catchThrowableOfType(
              RecordRefusedException.class,
              () -> Clients.send(producer, new ProducerRecord<>(topic, canaries.value())));
      assertThat(error.code()).isEqualTo(ErrorCode.NOT_AUTHORIZED);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "cipherlane.keyservice.urls, http://127.0.0.1:1, cipherlane.keyservice.urls",
    "cipherlane.keyservice.urls, '', cipherlane.keyservice.urls",
    "cipherlane.keyservice.tls.ca, /does/not/exist, cipherlane.keyservice.tls.ca",
    "cipherlane.keyservice.url, https://127.0.0.1:1, cipherlane.keyservice.urls",
    "cipherlane.failure.action, drop, cipherlane.failure.action",
    "cipherlane.keys.cache.max, 15, cipherlane.keys.cache.max",
    "cipherlane.keys.deadline.ms, soon, cipherlane.keys.deadline.ms",
    "value.serializer, org.apache.kafka.common.serialization.StringSerializer, partitioner.class",
    "value.serializer, org.apache.kafka.common.serialization.BytesSerializer, value.serializer",
    "value.serializer, dev.cipherlane.kafka.ProducingTest$Lenient, value.serializer",
  })
  void wrongSettingsAreRefused(String name, String value, String named) {
    // CL-KAF-004 CL-CFG-001 CL-CFG-002 CL-KEY-002
    Map<String, Object> settings =
        KafkaClients.with(
            Clients.producing(Cluster.keyService().settings("producer")), name, value);
    assertThatThrownBy(() -> new KafkaProducer<>(settings).close())
        .hasRootCauseInstanceOf(Exception.class)
        .hasStackTraceContaining("configuration-invalid")
        .hasStackTraceContaining(named);
  }

  /** Takes anything. */
  public static final class Lenient extends BytesSerializerBase {}

  /** A serializer of no type that the interceptor knows. */
  public static class BytesSerializerBase extends BytesSerializer {}

  @ParameterizedTest
  @ValueSource(
      strings = {
        "cipherlane.keyservice.urls",
        "cipherlane.keyservice.tls.ca",
        "cipherlane.keyservice.tls.certificate",
        "cipherlane.keyservice.tls.key"
      })
  void missingSettingsAreRefused(String name) { // CL-CFG-002
    Map<String, Object> settings =
        new HashMap<>(Clients.producing(Cluster.keyService().settings("producer")));
    settings.remove(name);
    assertThatThrownBy(() -> new KafkaProducer<>(settings).close())
        .hasStackTraceContaining("configuration-invalid: setting " + name + ": required");
  }

  @Test
  void serializerGivenAsAnInstanceIsRefusedToo() { // CL-KAF-004
    Map<String, Object> settings = Clients.producing(Cluster.keyService().settings("producer"));
    assertThatThrownBy(
            () ->
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())
                    .close())
        .hasStackTraceContaining("partitioner.class");
    assertThatThrownBy(
            () -> new KafkaProducer<>(settings, new StringSerializer(), new Lenient()).close())
        .hasStackTraceContaining("value.serializer");
  }

  @Test
  void sameSettingsEncryptTwoProducersWithDifferentSessions() { // CL-ENV-030
    byte[] value = "x".getBytes(StandardCharsets.UTF_8);
    for (int i = 0; i < 2; i++) {
      try (KafkaProducer<byte[], byte[]> producer = Clients.producer()) {
        Clients.send(producer, new ProducerRecord<>(topic, value));
      }
    }
    List<byte[]> stored = Clients.stored(topic, 2);
    assertThat(stored.get(0)).startsWith(java.util.Arrays.copyOf(stored.get(1), 20));
    assertThat(java.util.Arrays.copyOfRange(stored.get(0), 20, 40))
        .isNotEqualTo(java.util.Arrays.copyOfRange(stored.get(1), 20, 40));
  }
}
