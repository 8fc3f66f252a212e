package dev.cipherlane.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.ErrorCode;
import dev.cipherlane.testing.KafkaClients;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the consumer's interceptor does with records, good and bad. */
@ExtendWith(Cluster.class)
class ConsumingTest {
  private final String topic = "encrypted." + UUID.randomUUID();

  /** A record that is wrong, the error, and the change that makes it wrong. */
  static Stream<Arguments> badRecords() {
    return Stream.of(
        bad("cut to the magic", ErrorCode.ENVELOPE_TOO_SHORT, value -> Arrays.copyOf(value, 2)),
        bad("cut to 59 bytes", ErrorCode.ENVELOPE_TOO_SHORT, value -> Arrays.copyOf(value, 59)),
        bad("cut by one", ErrorCode.AUTHENTICATION_FAILED, v -> Arrays.copyOf(v, v.length - 1)),
        bad("longer by one", ErrorCode.AUTHENTICATION_FAILED, v -> Arrays.copyOf(v, v.length + 1)),
        bad("version 0", ErrorCode.UNSUPPORTED_VERSION, value -> set(value, 2, 0)),
        bad("version 2", ErrorCode.UNSUPPORTED_VERSION, value -> set(value, 2, 2)),
        bad("flag 0", ErrorCode.AUTHENTICATION_FAILED, value -> set(value, 3, 1)),
        bad("flag 1", ErrorCode.UNSUPPORTED_FLAGS, value -> set(value, 3, 2)),
        bad("flag 2", ErrorCode.AUTHENTICATION_FAILED, value -> set(value, 3, 4)),
        bad("flag 3", ErrorCode.UNSUPPORTED_FLAGS, value -> set(value, 3, 8)),
        bad("flag 4", ErrorCode.UNSUPPORTED_FLAGS, value -> set(value, 3, 16)),
        bad("flag 5", ErrorCode.UNSUPPORTED_FLAGS, value -> set(value, 3, 32)),
        bad("flag 6", ErrorCode.UNSUPPORTED_FLAGS, value -> set(value, 3, 64)),
        bad("flag 7", ErrorCode.UNSUPPORTED_FLAGS, value -> set(value, 3, 128)),
        bad("unknown kid", ErrorCode.KEY_UNKNOWN, value -> set(value, 4, value[4] ^ 1)),
        bad("nonce", ErrorCode.AUTHENTICATION_FAILED, value -> set(value, 20, value[20] ^ 1)),
        bad("counter", ErrorCode.AUTHENTICATION_FAILED, value -> set(value, 43, value[43] ^ 1)),
        bad("ciphertext", ErrorCode.AUTHENTICATION_FAILED, value -> set(value, 44, value[44] ^ 1)),
        bad("tag", ErrorCode.AUTHENTICATION_FAILED, v -> set(v, v.length - 1, v[v.length - 1] ^ 1)),
        bad("plaintext", ErrorCode.PLAINTEXT_REJECTED, value -> text("injected")),
        bad("empty plaintext", ErrorCode.PLAINTEXT_REJECTED, value -> new byte[0]));
  }

  private static Arguments bad(String name, ErrorCode code, UnaryOperator<byte[]> change) {
    return Arguments.of(name, code, change);
  }

  static byte[] set(byte[] value, int at, int to) {
    byte[] changed = value.clone();
    changed[at] = (byte) to;
    return changed;
  }

  private static byte[] text(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("badRecords")
  void badRecordStaysInItsPlace(String name, ErrorCode code, UnaryOperator<byte[]> change) {
    // CL-KAF-010 CL-KAF-011 CL-KAF-012 CL-ENV-012 CL-ERR-001
    byte[] good = envelope(topic, text("first"));
    assertUnreadableAmongGood(good, change.apply(good), code);
  }

  /**
   * The good one is the first of the topic already; the bad one follows, and the good one again.
   */
  private void assertUnreadableAmongGood(byte[] good, byte[] bad, ErrorCode code) {
    try (KafkaProducer<byte[], byte[]> producer = Clients.plainProducer()) {
      ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, 0, 77L, text("key"), bad);
      record.headers().add("h", text("v"));
      Clients.send(producer, List.of(record, new ProducerRecord<>(topic, good)));
    }
    try (KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      List<ConsumerRecord<byte[], byte[]>> records = KafkaClients.read(consumer, topic, 3);
      assertThat(records).extracting(ConsumerRecord::offset).containsExactly(0L, 1L, 2L);
      assertThat(records.get(0).value()).isEqualTo(text("first"));
      assertThat(records.get(2).value()).isEqualTo(text("first"));
      assertUnreadable(records.get(1), code);
    }
  }

  private void assertUnreadable(ConsumerRecord<byte[], byte[]> record, ErrorCode code) {
    RecordDecryptionException error =
        catchThrowableOfType(RecordDecryptionException.class, record::value);
    assertThat(error).isNotNull();
    assertThat(error.code()).isEqualTo(code);
    assertThat(error)
        .hasMessageStartingWith("topic " + topic + ", partition 0, offset 1")
        .hasMessageContaining(code.code());
    assertThat(error.getMessage()).doesNotContain("injected");
    error.kid().ifPresent(kid -> assertThat(error).hasMessageContaining("kid " + kid));
    assertThat(error.kid().isPresent())
        .isEqualTo(
            List.of(
                    ErrorCode.KEY_UNKNOWN,
                    ErrorCode.AUTHENTICATION_FAILED,
                    ErrorCode.SCOPE_MISMATCH)
                .contains(code));
    assertThat(record.key()).isEqualTo(text("key"));
    assertThat(record.timestamp()).isEqualTo(77L);
    assertThat(record.headers().lastHeader("h").value()).isEqualTo(text("v"));
    assertThat(record.leaderEpoch()).isPresent();
    assertThat(record.toString()).contains(code.code());
  }

  /** Encrypts a value, as offset 0 of the topic, and gives what is stored. */
  static byte[] envelope(String topic, byte[] value) {
    try (KafkaProducer<byte[], byte[]> producer = Clients.producer()) {
      Clients.send(producer, new ProducerRecord<>(topic, value));
    }
    return Clients.stored(topic, 1).get(0);
  }

  @Test
  void valueOfAnotherScopeIsRefused() {
    byte[] good = envelope(topic, text("first"));
    byte[] moved = envelope("shared." + UUID.randomUUID(), text("moved"));
    assertUnreadableAmongGood(good, moved, ErrorCode.SCOPE_MISMATCH);
  }

  @Test
  void valueOfTheSameScopeIsRead() {
    byte[] copied = envelope("shared." + UUID.randomUUID(), text("copied"));
    String other = "shared." + UUID.randomUUID();
    try (KafkaProducer<byte[], byte[]> producer = Clients.plainProducer();
        KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      Clients.send(producer, new ProducerRecord<>(other, copied));
      assertThat(KafkaClients.read(consumer, other, 1).get(0).value()).isEqualTo(text("copied"));
    }
  }

  @Test
  void readerWithoutTheRightIsRefused() { // CL-ENV-009
    String hidden = "hidden." + UUID.randomUUID();
    byte[] refused = envelope(hidden, text("hidden"));
    envelope(topic, text("first"));
    try (KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      Map<String, ConsumerRecord<byte[], byte[]>> records = firstOf(consumer, topic, hidden);
      assertThat(records.get(topic).value()).isEqualTo(text("first"));
      RecordDecryptionException error =
          catchThrowableOfType(RecordDecryptionException.class, records.get(hidden)::value);
      assertThat(error.code()).isEqualTo(ErrorCode.NOT_AUTHORIZED);
      assertThat(error)
          .hasMessageStartingWith("topic " + hidden + ", partition 0, offset 0")
          .hasMessageContaining("kid " + HexFormat.of().formatHex(refused, 4, 20))
          .hasMessageContaining("not-authorized");
    }
  }

  /** The first record of each of two topics, by one poll where the broker gives both. */
  private static Map<String, ConsumerRecord<byte[], byte[]>> firstOf(
      KafkaConsumer<byte[], byte[]> consumer, String one, String other) {
    List<TopicPartition> partitions =
        List.of(new TopicPartition(one, 0), new TopicPartition(other, 0));
    consumer.assign(partitions);
    consumer.seekToBeginning(partitions);
    Map<String, ConsumerRecord<byte[], byte[]>> found = new HashMap<>();
    long end = System.nanoTime() + Duration.ofSeconds(40).toNanos();
    while (found.size() < 2 && System.nanoTime() < end) {
      consumer
          .poll(Duration.ofMillis(200))
          .forEach(record -> found.putIfAbsent(record.topic(), record));
    }
    return found;
  }

  @ParameterizedTest
  @ValueSource(strings = {"forbidden.", "unknown."})
  void topicsThatMayNotBeReadAreRefused(String prefix) {
    byte[] value = envelope(topic, text("value"));
    ErrorCode expected =
        prefix.equals("forbidden.") ? ErrorCode.TOPIC_FORBIDDEN : ErrorCode.TOPIC_UNKNOWN;
    assertThat(copied(value, prefix + UUID.randomUUID()).code()).isEqualTo(expected);
    assertThat(copied(text("plaintext"), prefix + UUID.randomUUID()).code()).isEqualTo(expected);
  }

  /** Copies a stored value, as the broker's operator could, and reads it there. */
  private static RecordDecryptionException copied(byte[] stored, String topic) {
    try (KafkaProducer<byte[], byte[]> producer = Clients.plainProducer();
        KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      Clients.send(producer, new ProducerRecord<>(topic, stored));
      ConsumerRecord<byte[], byte[]> record = KafkaClients.read(consumer, topic, 1).get(0);
      return catchThrowableOfType(RecordDecryptionException.class, record::value);
    }
  }

  @Test
  void nullStaysNullAndEmptyStaysEmpty() { // CL-ENV-001 CL-ENV-040
    try (KafkaProducer<byte[], byte[]> producer = Clients.producer();
        KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      Clients.send(producer, new ProducerRecord<>(topic, text("k"), null));
      Clients.send(producer, new ProducerRecord<>(topic, text("k"), new byte[0]));
      List<ConsumerRecord<byte[], byte[]>> records = KafkaClients.read(consumer, topic, 2);
      assertThat(records.get(0).value()).isNull();
      assertThat(records.get(1).value()).isEmpty();
      assertThat(records.get(1).serializedValueSize()).isZero();
    }
  }

  @Test
  void plaintextIsReadWhereThePolicyAcceptsIt() { // CL-ENV-002 CL-ENV-003
    String migrating = "migrating." + UUID.randomUUID();
    byte[] envelope = envelope(migrating, text("new"));
    try (KafkaProducer<byte[], byte[]> producer = Clients.plainProducer();
        KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      Clients.send(producer, new ProducerRecord<>(migrating, text("old")));
      Clients.send(producer, new ProducerRecord<>(migrating, Arrays.copyOf(envelope, 30)));
      List<ConsumerRecord<byte[], byte[]>> records = KafkaClients.read(consumer, migrating, 3);
      assertThat(records.get(0).value()).isEqualTo(text("new"));
      assertThat(records.get(1).value()).isEqualTo(text("old"));
      assertThatThrownBy(() -> records.get(2).value()).hasMessageContaining("envelope-too-short");
    }
  }
}
