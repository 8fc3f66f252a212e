package dev.cipherlane.kafka;

import static dev.cipherlane.kafka.FailureActionsTest.string;
import static dev.cipherlane.kafka.FailureActionsTest.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.ErrorCode;
import dev.cipherlane.testing.KafkaClients;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Binding the record key, and compressing, by the settings of clients. */
@ExtendWith(Cluster.class)
class RecordKeyTest {
  private final String topic = "encrypted." + UUID.randomUUID();
  private final Canaries canaries = new Canaries();

  @AfterEach
  void noCanaryIsStored() throws IOException {
    canaries.assertNoneStored();
  }

  private static Map<String, Object> binding(Object... more) {
    return KafkaClients.with(
        KafkaClients.with(
            Clients.producing(Cluster.keyService().settings("producer")),
            "cipherlane.record.key.topics",
            "none,encrypted.*"),
        more);
  }

  @Test
  void keysAreBoundWhereTheSettingSaysSo() { // CL-KAF-030 CL-ENV-008
    byte[] value = canaries.value();
    String other = "shared." + UUID.randomUUID();
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(binding());
        KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      Clients.send(producer, new ProducerRecord<>(topic, text("key"), value));
      Clients.send(producer, new ProducerRecord<>(topic, null, value));
      Clients.send(producer, new ProducerRecord<>(topic, new byte[0], value));
      Clients.send(producer, new ProducerRecord<>(other, text("key"), value));
      assertThat(KafkaClients.read(consumer, topic, 3))
          .extracting(ConsumerRecord::value)
          .containsExactly(value, value, value);
      assertThat(Clients.stored(topic, 3)).allSatisfy(v -> assertThat(v[3]).isEqualTo((byte) 4));
      assertThat(Clients.stored(other, 1).get(0)[3]).isZero();
    }
  }

  @Test
  void boundValueIsReadWithItsOwnKeyOnly() { // CL-ENV-008
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(binding());
        KafkaProducer<byte[], byte[]> plain = Clients.plainProducer();
        KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      Clients.send(producer, new ProducerRecord<>(topic, text("key"), canaries.value()));
      byte[] stored = Clients.stored(topic, 1).get(0);
      Clients.send(plain, new ProducerRecord<>(topic, text("kez"), stored));
      Clients.send(plain, new ProducerRecord<>(topic, new byte[0], stored));
      Clients.send(plain, new ProducerRecord<>(topic, null, stored));
      Clients.send(plain, new ProducerRecord<>(topic, text("key"), stored));
      List<ConsumerRecord<byte[], byte[]>> records = KafkaClients.read(consumer, topic, 5);
      assertThat(records.get(4).value()).isEqualTo(records.get(0).value());
      for (ConsumerRecord<byte[], byte[]> moved : records.subList(1, 4)) {
        assertThat(catchThrowableOfType(RecordDecryptionException.class, moved::value).code())
            .isEqualTo(ErrorCode.AUTHENTICATION_FAILED);
      }
    }
  }

  @Test
  void keysOfAnotherSerializerAreRefused() { // CL-KAF-031 CL-KAF-001
    try (KafkaProducer<String, byte[]> producer =
        new KafkaProducer<>(binding("key.serializer", StringSerializer.class.getName()))) {
      for (String key : new String[] {"key", "", null}) {
        assertRefused(producer, new ProducerRecord<>(topic, key, canaries.value()));
      }
    }
  }

  @Test
  void serializerSeesNoKeyAndRefuses() { // CL-KAF-031
    try (KafkaProducer<byte[], String> producer =
        new KafkaProducer<>(
            binding(
                "interceptor.classes", "",
                "value.serializer", EncryptingSerializer.class,
                "cipherlane.value.serializer", StringSerializer.class))) {
      assertRefused(producer, new ProducerRecord<>(topic, text("key"), canaries.text()));
      assertRefused(producer, new ProducerRecord<>(topic, canaries.text()));
    }
  }

  @Test
  void stringProducerRefuses() { // CL-KAF-031
    try (KafkaProducer<String, String> producer =
        new KafkaProducer<>(
            binding(
                "key.serializer", StringSerializer.class.getName(),
                "value.serializer", StringSerializer.class.getName(),
                "partitioner.class", EnvelopePartitioner.class.getName()))) {
      assertRefused(producer, new ProducerRecord<>(topic, "key", canaries.text()));
    }
  }

  private <K, V> void assertRefused(KafkaProducer<K, V> producer, ProducerRecord<K, V> record) {
    RecordRefusedException error =
        catchThrowableOfType(RecordRefusedException.class, () -> producer.send(record));
    assertThat(error.code()).isEqualTo(ErrorCode.RECORD_KEY_UNAVAILABLE);
    assertThat(error).hasMessageContaining(topic);
  }

  @Test
  void readerThatDoesNotSeeKeysAsTheyAreStoredRefusesAllButNull() { // CL-ENV-008
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(binding());
        KafkaConsumer<String, byte[]> consumer =
            new KafkaConsumer<>(
                KafkaClients.with(
                    Clients.consuming(Cluster.keyService().settings("consumer")),
                    "key.deserializer",
                    StringDeserializer.class.getName()))) {
      Clients.send(producer, new ProducerRecord<>(topic, text("key"), canaries.value()));
      Clients.send(producer, new ProducerRecord<>(topic, null, canaries.value()));
      List<ConsumerRecord<String, byte[]>> records = KafkaClients.read(consumer, topic, 2);
      assertThat(
              catchThrowableOfType(RecordDecryptionException.class, records.get(0)::value).code())
          .isEqualTo(ErrorCode.RECORD_KEY_UNAVAILABLE);
      assertThat(records.get(1).value()).isNotEmpty();
    }
  }

  @Test
  void valuesAreCompressedFromTheSizeOnThatTheSettingSays() {
    String same = "x".repeat(2_000);
    try (KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(
                KafkaClients.with(
                    Clients.producing(Cluster.keyService().settings("producer")),
                    "cipherlane.compression.topics",
                    "encrypted.*",
                    "cipherlane.compression.min.bytes",
                    "1500",
                    "cipherlane.record.key.topics",
                    "*"));
        KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      Clients.send(producer, new ProducerRecord<>(topic, text("key"), text(same)));
      Clients.send(producer, new ProducerRecord<>(topic, text(same.substring(1_000))));
      List<byte[]> stored = Clients.stored(topic, 2);
      assertThat(stored.get(0)).hasSizeLessThan(200);
      assertThat(stored.get(0)[3]).isEqualTo((byte) 5);
      assertThat(stored.get(1)).hasSize(1_060);
      assertThat(KafkaClients.read(consumer, topic, 2))
          .extracting(record -> string(record.value()))
          .containsExactly(same, same.substring(1_000));
    }
  }
}
