package dev.cipherlane.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.ErrorCode;
import dev.cipherlane.TestKeys;
import dev.cipherlane.cipher.EncryptingSession;
import dev.cipherlane.cipher.Secret;
import dev.cipherlane.envelope.Envelope;
import dev.cipherlane.envelope.Header;
import dev.cipherlane.keyservice.HostileKeyService;
import dev.cipherlane.testing.KafkaClients;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.RecordDeserializationException;
import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.LongSerializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** EncryptingSerializer and DecryptingDeserializer in real clients. */
@ExtendWith(Cluster.class)
class SerdeTest {
  @TempDir Path folder;

  private final String topic = "encrypted." + UUID.randomUUID();
  private final Canaries canaries = new Canaries();

  @AfterEach
  void noCanaryIsStored() throws IOException {
    canaries.assertNoneStored();
  }

  private static Map<String, Object> producing(String principal, Class<?> inner) {
    return KafkaClients.with(
        Clients.producing(Cluster.keyService().settings(principal)),
        "interceptor.classes",
        "",
        "value.serializer",
        EncryptingSerializer.class,
        "cipherlane.value.serializer",
        inner.getName());
  }

  private static Map<String, Object> consuming(String principal, Class<?> inner) {
    return KafkaClients.with(
        Clients.consuming(Cluster.keyService().settings(principal)),
        "interceptor.classes",
        "",
        "value.deserializer",
        DecryptingDeserializer.class,
        "cipherlane.value.deserializer",
        inner);
  }

  @Test
  void stringsComeBack() {
    String value = canaries.text();
    try (KafkaProducer<byte[], String> producer =
            new KafkaProducer<>(producing("producer", StringSerializer.class));
        KafkaConsumer<byte[], String> consumer =
            new KafkaConsumer<>(consuming("consumer", StringDeserializer.class))) {
      Clients.send(producer, new ProducerRecord<>(topic, value));
      Clients.send(producer, new ProducerRecord<>(topic, new byte[] {1}, null));
      Clients.send(producer, new ProducerRecord<>(topic, ""));
      assertThat(KafkaClients.read(consumer, topic, 3))
          .extracting(ConsumerRecord::value)
          .containsExactly(value, null, "");
    }
    assertThat(Clients.stored(topic, 3).get(0)).startsWith(0xC1, 0x9E);
  }

  @Test
  void interceptorAndSerdeReadEachOther() {
    try (KafkaProducer<byte[], Long> producer =
            new KafkaProducer<>(producing("producer", LongSerializer.class));
        KafkaProducer<byte[], byte[]> bytes = Clients.producer();
        KafkaConsumer<byte[], Long> consumer =
            new KafkaConsumer<>(consuming("consumer", LongDeserializer.class));
        KafkaConsumer<byte[], byte[]> byteConsumer = Clients.consumer()) {
      Clients.send(producer, new ProducerRecord<>(topic, 7L));
      Clients.send(bytes, new ProducerRecord<>(topic, new byte[] {0, 0, 0, 0, 0, 0, 0, 8}));
      assertThat(KafkaClients.read(consumer, topic, 2))
          .extracting(ConsumerRecord::value)
          .containsExactly(7L, 8L);
      assertThat(KafkaClients.read(byteConsumer, topic, 2).get(0).value())
          .isEqualTo(new byte[] {0, 0, 0, 0, 0, 0, 0, 7});
    }
  }

  @Test
  void whatIsRefusedIsNotSent() { // CL-KAF-001
    try (KafkaProducer<byte[], String> producer =
        new KafkaProducer<>(producing("stranger", StringSerializer.class))) {
      RecordRefusedException error =
          catchThrowableOfType(
              RecordRefusedException.class,
              () -> Clients.send(producer, new ProducerRecord<>(topic, canaries.text())));
      assertThat(error.code()).isEqualTo(ErrorCode.NOT_AUTHORIZED);
      assertThat(error.topic()).isEqualTo(topic);
      assertThat(error).hasMessageContaining(topic).hasMessageContaining("not-authorized");
    }
  }

  @Test
  void positionStaysAtWhatCannotBeDecrypted() { // CL-KAF-013 CL-KAF-010
    try (KafkaProducer<byte[], byte[]> encrypting = Clients.producer();
        KafkaProducer<byte[], byte[]> plain = Clients.plainProducer();
        KafkaConsumer<byte[], String> consumer =
            new KafkaConsumer<>(consuming("consumer", StringDeserializer.class))) {
      Clients.send(
          encrypting,
          new ProducerRecord<>(topic, "first".getBytes(java.nio.charset.StandardCharsets.UTF_8)));
      Clients.send(plain, new ProducerRecord<>(topic, new byte[] {1, 2, 3}));
      TopicPartition partition = new TopicPartition(topic, 0);
      consumer.assign(List.of(partition));
      consumer.seekToBeginning(List.of(partition));
      for (int i = 0; i < 2; i++) {
        RecordDeserializationException error = failure(consumer);
        assertThat(error.topicPartition()).isEqualTo(partition);
        assertThat(error.offset()).isEqualTo(1);
        assertThat(error.getCause())
            .isInstanceOf(RecordDecryptionException.class)
            .hasMessageContaining(topic)
            .hasMessageContaining("plaintext-rejected");
        assertThat(consumer.position(partition)).isEqualTo(1);
      }
    }
  }

  /** Polls until it fails: what comes before may come first. */
  private static RecordDeserializationException failure(KafkaConsumer<byte[], String> consumer) {
    for (int i = 0; i < 50; i++) {
      try {
        consumer.poll(Duration.ofMillis(500));
      } catch (RecordDeserializationException e) {
        return e;
      }
    }
    throw new AssertionError("the record was read");
  }

  @Test
  void keysAreNeverEncrypted() { // CL-KAF-006
    Map<String, Object> producing =
        KafkaClients.with(
            producing("producer", StringSerializer.class),
            "key.serializer",
            EncryptingSerializer.class);
    assertThatThrownBy(() -> new KafkaProducer<>(producing).close())
        .hasStackTraceContaining("record keys are never encrypted");
    Map<String, Object> consuming =
        KafkaClients.with(
            consuming("consumer", StringDeserializer.class),
            "key.deserializer",
            DecryptingDeserializer.class);
    assertThatThrownBy(() -> new KafkaConsumer<>(consuming).close())
        .hasStackTraceContaining("record keys are never encrypted");
  }

  @Test
  void wrappedClassMustBeGivenAndFit() { // CL-CFG-002
    for (Object inner : new Object[] {null, "no.such.Class", "java.lang.String", Long.class}) {
      Map<String, Object> producing =
          KafkaClients.with(
              producing("producer", StringSerializer.class), "cipherlane.value.serializer", inner);
      assertThatThrownBy(() -> new EncryptingSerializer<>().configure(producing, false))
          .isInstanceOf(ConfigException.class)
          .hasMessageContaining("cipherlane.value.serializer");
      Map<String, Object> consuming =
          KafkaClients.with(
              consuming("consumer", StringDeserializer.class),
              "cipherlane.value.deserializer",
              inner);
      assertThatThrownBy(() -> new DecryptingDeserializer<>().configure(consuming, false))
          .isInstanceOf(ConfigException.class)
          .hasMessageContaining("cipherlane.value.deserializer");
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"skip", "dead-letter", "mark"})
  void deserializerCanOnlyFail(String action) { // CL-KAF-026
    Map<String, Object> settings =
        KafkaClients.with(
            consuming("consumer", StringDeserializer.class), "cipherlane.failure.action", action);
    assertThatThrownBy(() -> new KafkaConsumer<>(settings).close())
        .hasStackTraceContaining("configuration-invalid")
        .hasStackTraceContaining("cipherlane.failure.action");
  }

  @Test
  void serdesOfInstancesWork() {
    try (EncryptingSerializer<String> serializer =
            new EncryptingSerializer<>(new StringSerializer());
        DecryptingDeserializer<String> deserializer =
            new DecryptingDeserializer<>(new StringDeserializer())) {
      serializer.configure(Cluster.keyService().settings("producer"), false);
      deserializer.configure(Cluster.keyService().settings("consumer"), false);
      byte[] envelope = serializer.serialize(topic, "text");
      assertThat(envelope).hasSize(64).startsWith(0xC1, 0x9E);
      assertThat(deserializer.deserialize(topic, envelope)).isEqualTo("text");
    }
  }

  @Test
  void recordKeyThatIsBoundNeedsTheInterceptor() throws IOException { // CL-ENV-008
    byte[] key = TestKeys.bytes();
    byte[] recordKey = {1, 2};
    byte[] envelope = bound(key, recordKey);
    try (HostileKeyService service = HostileKeyService.start(folder);
        DecryptingDeserializer<String> deserializer =
            new DecryptingDeserializer<>(new StringDeserializer())) {
      service.handler =
          (path, request) ->
              HostileKeyService.Reply.ok(HostileKeyService.decryptionKeys("scope", key, 60));
      deserializer.configure(service.settings(), false);
      assertThat(
              catchThrowableOfType(
                      RecordDecryptionException.class,
                      () -> deserializer.deserialize(topic, envelope))
                  .code())
          .isEqualTo(ErrorCode.RECORD_KEY_UNAVAILABLE);
      assertBoundToKey(service.settings(), envelope, recordKey);
    }
  }

  private void assertBoundToKey(Map<String, Object> settings, byte[] envelope, byte[] recordKey) {
    try (KafkaProducer<byte[], byte[]> producer = Clients.plainProducer();
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(Clients.consuming(settings))) {
      Clients.send(producer, new ProducerRecord<>(topic, recordKey, envelope));
      Clients.send(producer, new ProducerRecord<>(topic, new byte[] {1, 3}, envelope));
      Clients.send(producer, new ProducerRecord<>(topic, envelope));
      List<ConsumerRecord<byte[], byte[]>> records = KafkaClients.read(consumer, topic, 3);
      assertThat(records.get(0).value()).isEqualTo(new byte[] {'h', 'i'});
      for (ConsumerRecord<byte[], byte[]> moved : records.subList(1, 3)) {
        assertThat(catchThrowableOfType(RecordDecryptionException.class, moved::value).code())
            .isEqualTo(ErrorCode.AUTHENTICATION_FAILED);
      }
    }
  }

  private static byte[] bound(byte[] key, byte[] recordKey) {
    Header header = Header.of(Envelope.FLAG_KEY_BOUND, TestKeys.kid(key), "scope");
    byte[] plaintext = {'h', 'i'};
    byte[] envelope = header.newEnvelope(plaintext.length);
    EncryptingSession session = EncryptingSession.begin(Secret.take(key.clone()), 0);
    session.tryEncrypt(header.aad(recordKey), plaintext, envelope, Envelope.NONCE_OFFSET, 0);
    return envelope;
  }
}
