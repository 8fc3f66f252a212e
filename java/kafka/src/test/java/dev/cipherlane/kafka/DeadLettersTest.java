package dev.cipherlane.kafka;

import static dev.cipherlane.kafka.FailureActionsTest.string;
import static dev.cipherlane.kafka.FailureActionsTest.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.ErrorCode;
import dev.cipherlane.testing.KafkaClients;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The failure action dead-letter. */
@ExtendWith(Cluster.class)
class DeadLettersTest {
  private static final String PREFIX = "cipherlane.error";

  private final String topic = "encrypted." + UUID.randomUUID();
  private final String letters = topic + ".dead-letter";

  private static KafkaConsumer<byte[], byte[]> consumer(Object... more) {
    return FailureActionsTest.consumer("dead-letter", more);
  }

  @Test
  void lettersHaveEverythingAndTheApplicationGetsTheRest() throws Exception { // CL-KAF-022
    Clients.create(topic, 3);
    byte[] good = ConsumingTest.envelope(topic, text("good"));
    List<FailureActionsTest.Bad> bad = FailureActionsTest.bad(good);
    writeBad(bad);
    try (KafkaConsumer<byte[], byte[]> consumer = consumer("client.id", topic)) {
      List<ConsumerRecord<byte[], byte[]>> read = KafkaClients.read(consumer, topic, 1);
      assertThat(read).extracting(record -> string(record.value())).containsExactly("good");
      assertThat(Jmx.consumer(topic, "dead-lettered-total")).isEqualTo(bad.size());
      assertThat(consumer.assignment().stream().mapToLong(consumer::position).sum())
          .isEqualTo(bad.size() + 1L);
    }
    try (KafkaConsumer<byte[], byte[]> plain = Clients.plainConsumer()) {
      List<ConsumerRecord<byte[], byte[]>> found = KafkaClients.read(plain, letters, bad.size());
      assertThat(found).hasSize(bad.size());
      found.forEach(letter -> assertLetter(letter, bad));
    }
  }

  private void writeBad(List<FailureActionsTest.Bad> bad) {
    try (KafkaProducer<byte[], byte[]> plain = Clients.plainProducer()) {
      for (int i = 0; i < bad.size(); i++) {
        ProducerRecord<byte[], byte[]> record =
            new ProducerRecord<>(topic, i % 3, 77L, text("" + i), bad.get(i).value());
        record.headers().add("own", text("header"));
        for (String name : List.of("", ".topic", ".partition", ".offset", ".kid")) {
          record.headers().add(PREFIX + name, text("forged"));
        }
        Clients.send(plain, record);
      }
    }
  }

  private void assertLetter(
      ConsumerRecord<byte[], byte[]> letter, List<FailureActionsTest.Bad> bad) {
    int number = Integer.parseInt(string(letter.key()));
    FailureActionsTest.Bad expected = bad.get(number);
    assertThat(letter.value()).isEqualTo(expected.value());
    assertThat(letter.timestamp()).isEqualTo(77L);
    Map<String, String> headers = new HashMap<>();
    for (Header header : letter.headers()) {
      assertThat(headers.put(header.key(), string(header.value()))).as("once").isNull();
    }
    assertThat(headers)
        .containsEntry("own", "header")
        .containsEntry(PREFIX, expected.code().code())
        .containsEntry(PREFIX + ".topic", topic)
        .containsEntry(PREFIX + ".partition", Integer.toString(number % 3))
        .containsKey(PREFIX + ".offset");
    assertThat(headers.get(PREFIX + ".offset")).matches("\\d+");
    boolean hasKid = headers.containsKey(PREFIX + ".kid");
    assertThat(hasKid)
        .isEqualTo(
            List.of(
                    ErrorCode.KEY_UNKNOWN,
                    ErrorCode.AUTHENTICATION_FAILED,
                    ErrorCode.SCOPE_MISMATCH)
                .contains(expected.code()));
    if (hasKid) {
      assertThat(headers.get(PREFIX + ".kid")).matches("[0-9a-f]{32}");
    }
  }

  @Test
  void letterIsReadOnceItsCauseIsMended() {
    String shared = "shared." + UUID.randomUUID();
    ConsumingTest.envelope(shared, text("rather long"));
    try (KafkaConsumer<byte[], byte[]> narrow =
            consumer("cipherlane.max.plaintext.bytes", "5", "client.id", shared);
        KafkaConsumer<byte[], byte[]> wide = Clients.consumer()) {
      assertThat(KafkaClients.read(narrow, shared, 0)).isEmpty();
      while (Jmx.consumer(shared, "dead-lettered-total") < 1) {
        assertThat(narrow.poll(java.time.Duration.ofMillis(200)).isEmpty()).isTrue();
      }
      ConsumerRecord<byte[], byte[]> letter =
          KafkaClients.read(wide, shared + ".dead-letter", 1).get(0);
      assertThat(string(letter.value())).isEqualTo("rather long");
      assertThat(string(letter.headers().lastHeader(PREFIX).value()))
          .isEqualTo("plaintext-too-long");
    }
  }

  @Test
  void topicMayBeOneForAll() {
    String all = "all-dead." + UUID.randomUUID();
    byte[] good = ConsumingTest.envelope(topic, text("good"));
    try (KafkaProducer<byte[], byte[]> plain = Clients.plainProducer();
        KafkaConsumer<byte[], byte[]> consumer = consumer("cipherlane.dead.letter.topic", all)) {
      Clients.send(plain, new ProducerRecord<>(topic, ConsumingTest.set(good, 2, 9)));
      Clients.send(plain, new ProducerRecord<>(topic, good));
      assertThat(KafkaClients.read(consumer, topic, 2))
          .extracting(ConsumerRecord::offset)
          .containsExactly(0L, 2L);
      assertThat(Clients.stored(all, 1)).hasSize(1);
    }
  }

  /** A topic that is itself, and two that no broker takes. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "{topic}",
        "{topic}.{topic}.{topic}.{topic}.{topic}.{topic}",
        "__cluster_metadata"
      })
  void whatTheTopicDoesNotTakeIsMetAsUnderFail(String deadLetterTopic) { // CL-KAF-023
    byte[] good = ConsumingTest.envelope(topic, text("good"));
    try (KafkaProducer<byte[], byte[]> plain = Clients.plainProducer();
        KafkaConsumer<byte[], byte[]> consumer =
            consumer("cipherlane.dead.letter.topic", deadLetterTopic)) {
      Clients.send(plain, new ProducerRecord<>(topic, ConsumingTest.set(good, 2, 9)));
      List<ConsumerRecord<byte[], byte[]>> records = KafkaClients.read(consumer, topic, 2);
      assertThat(records).hasSize(2);
      assertThat(records.get(0).value()).isEqualTo(text("good"));
      assertBothSaid(records.get(1), deadLetterTopic.replace("{topic}", topic));
    }
  }

  private static void assertBothSaid(ConsumerRecord<byte[], byte[]> record, String letters) {
    RecordDecryptionException error =
        catchThrowableOfType(RecordDecryptionException.class, record::value);
    assertThat(error.code()).isEqualTo(ErrorCode.UNSUPPORTED_VERSION);
    assertThat(error)
        .hasMessageContaining("offset " + record.offset())
        .hasMessageContaining("unsupported-version")
        .hasMessageContaining("dead-letter topic " + letters + " did not take it: ");
    assertThat(error.getSuppressed()).hasSize(1);
  }

  @Test
  void onlyWhatDoesNotFitStays() throws Exception { // CL-KAF-023
    try (Admin admin = Admin.create(Clients.producing(Map.of()))) {
      NewTopic small =
          new NewTopic(letters, 1, (short) 1).configs(Map.of("max.message.bytes", "1000"));
      admin.createTopics(List.of(small)).all().get();
    }
    byte[] good = ConsumingTest.envelope(topic, text("good"));
    byte[] large = java.util.Arrays.copyOf(ConsumingTest.set(good, 2, 9), 5_000);
    try (KafkaProducer<byte[], byte[]> plain = Clients.plainProducer();
        KafkaConsumer<byte[], byte[]> consumer = consumer()) {
      Clients.send(plain, new ProducerRecord<>(topic, large));
      Clients.send(plain, new ProducerRecord<>(topic, ConsumingTest.set(good, 2, 9)));
      List<ConsumerRecord<byte[], byte[]>> records = KafkaClients.read(consumer, topic, 2);
      assertThat(records).extracting(ConsumerRecord::offset).containsExactly(0L, 1L);
      assertBothSaid(records.get(1), letters);
    }
    assertThat(Clients.stored(letters, 1)).containsExactly(ConsumingTest.set(good, 2, 9));
  }

  @Test
  void keysThatAreNotBytesAreRefused() {
    assertThatThrownBy(() -> consumer("key.deserializer", StringDeserializer.class.getName()))
        .hasStackTraceContaining("configuration-invalid")
        .hasStackTraceContaining("key.deserializer=ByteArrayDeserializer");
  }

  @Test
  void producerHasTheConsumersConnectionAndSecurityAndNothingElse() { // CL-KAF-022
    Map<String, Object> consumer =
        KafkaClients.with(
            Clients.consuming(Map.of()),
            "client.id",
            "app",
            "security.protocol",
            "SASL_SSL",
            "sasl.mechanism",
            "SCRAM-SHA-512",
            "sasl.jaas.config",
            "secret",
            "ssl.truststore.location",
            "/trust",
            "ssl.engine.factory.class",
            "some.Factory",
            "some.factory.own",
            "setting",
            "transactional.id",
            "must not be shared",
            "compression.type",
            "zstd",
            "max.poll.records",
            7);
    Map<String, Object> producer = DeadLetterSettings.of(consumer);
    List<String> passedOn = new ArrayList<>(producer.keySet());
    passedOn.retainAll(consumer.keySet());
    assertThat(passedOn)
        .containsExactlyInAnyOrder(
            "bootstrap.servers",
            "client.id",
            "security.protocol",
            "sasl.mechanism",
            "sasl.jaas.config",
            "ssl.truststore.location",
            "ssl.engine.factory.class",
            "some.factory.own");
    assertThat(producer)
        .containsEntry("acks", "all")
        .containsEntry("client.id", "app-dead-letter")
        .containsEntry("sasl.jaas.config", "secret");
  }
}
