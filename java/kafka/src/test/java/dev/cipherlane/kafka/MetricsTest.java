package dev.cipherlane.kafka;

import static dev.cipherlane.kafka.FailureActionsTest.text;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.cipherlane.testing.KafkaClients;
import io.micrometer.core.instrument.Metrics;
import io.micrometer.core.instrument.search.RequiredSearch;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.util.UUID;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** The numbers of clients, as JMX shows them. */
@ExtendWith(Cluster.class)
class MetricsTest {
  private final String topic = "encrypted." + UUID.randomUUID();
  private final String id = UUID.randomUUID().toString();

  @Test
  void producerCountsRecordsFailuresAndKeys() {
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(
            KafkaClients.with(
                Clients.producing(Cluster.keyService().settings("producer")), "client.id", id))) {
      assertThat(Jmx.producer(id, "records-encrypted-total")).isZero();
      for (int i = 0; i < 3; i++) {
        Clients.send(producer, new ProducerRecord<>(topic, text("value")));
      }
      assertThat(
              catchThrowable(
                  () -> producer.send(new ProducerRecord<>("forbidden." + id, text("no")))))
          .isInstanceOf(RecordRefusedException.class);
      assertThat(Jmx.producer(id, "records-encrypted-total")).isEqualTo(3);
      assertThat(Jmx.producer(id + ",code=topic-forbidden", "failures-total")).isEqualTo(1);
      assertThat(Jmx.producer(id + ",code=internal", "failures-total")).isZero();
      assertThat(Jmx.producer(id, "key-requests-total")).isPositive();
      assertThat(Jmx.producer(id, "keys-cached")).isPositive();
      assertThat(Jmx.producer(id, "lease-seconds-left")).isBetween(1L, 300L);
    }
    assertThat(Jmx.producer(id, "records-encrypted-total")).as("gone").isEqualTo(-1);
  }

  @Test
  void consumerCountsPlaintextThatThePolicyAccepts() {
    String migrating = "migrating." + UUID.randomUUID();
    ConsumingTest.envelope(migrating, text("new"));
    try (KafkaProducer<byte[], byte[]> plain = Clients.plainProducer();
        KafkaConsumer<byte[], byte[]> consumer =
            new KafkaConsumer<>(
                KafkaClients.with(
                    Clients.consuming(Cluster.keyService().settings("consumer")),
                    "client.id",
                    id))) {
      Clients.send(plain, new ProducerRecord<>(migrating, text("old 1")));
      Clients.send(plain, new ProducerRecord<>(migrating, text("old 2")));
      assertThat(KafkaClients.read(consumer, migrating, 3)).hasSize(3);
      assertThat(Jmx.consumer(id, "plaintext-accepted-total")).isEqualTo(2);
      assertThat(Jmx.consumer(id, "records-decrypted-total")).isEqualTo(1);
    }
    assertThat(Jmx.consumer(id, "records-decrypted-total")).as("gone").isEqualTo(-1);
  }

  @Test
  void micrometerHasTheSameNumbers() {
    SimpleMeterRegistry registry = new SimpleMeterRegistry();
    Metrics.addRegistry(registry);
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(
            KafkaClients.with(
                Clients.producing(Cluster.keyService().settings("producer")), "client.id", id))) {
      Clients.send(producer, new ProducerRecord<>(topic, text("value")));
      assertThat(
              catchThrowable(
                  () -> producer.send(new ProducerRecord<>("forbidden." + id, text("no")))))
          .isInstanceOf(RecordRefusedException.class);
      System.gc(); // What meters measure must be held.
      RequiredSearch search = registry.get("cipherlane.records.encrypted").tag("client.id", id);
      assertThat(search.functionCounter().count()).isEqualTo(1);
      assertThat(
              registry
                  .get("cipherlane.failures")
                  .tags("client.id", id, "code", "topic-forbidden")
                  .functionCounter()
                  .count())
          .isEqualTo(1);
      assertThat(registry.get("cipherlane.keys.cached").tag("client.id", id).gauge().value())
          .isPositive();
    } finally {
      Metrics.removeRegistry(registry);
    }
    assertThat(
            Metrics.globalRegistry
                .find("cipherlane.records.encrypted")
                .tag("client.id", id)
                .meters())
        .isEmpty();
  }

  @Test
  void serializersCountToo() {
    try (KafkaProducer<byte[], String> producer =
            new KafkaProducer<>(
                KafkaClients.with(
                    Clients.producing(Cluster.keyService().settings("producer")),
                    "client.id",
                    id,
                    "interceptor.classes",
                    "",
                    "value.serializer",
                    EncryptingSerializer.class,
                    "cipherlane.value.serializer",
                    StringSerializer.class));
        KafkaConsumer<byte[], String> consumer =
            new KafkaConsumer<>(
                KafkaClients.with(
                    Clients.consuming(Cluster.keyService().settings("consumer")),
                    "client.id",
                    id,
                    "interceptor.classes",
                    "",
                    "value.deserializer",
                    DecryptingDeserializer.class,
                    "cipherlane.value.deserializer",
                    StringDeserializer.class))) {
      Clients.send(producer, new ProducerRecord<>(topic, "text"));
      assertThat(KafkaClients.read(consumer, topic, 1)).hasSize(1);
      assertThat(Jmx.producer(id, "records-encrypted-total")).isEqualTo(1);
      assertThat(Jmx.consumer(id, "records-decrypted-total")).isEqualTo(1);
    }
    assertThat(Jmx.producer(id, "records-encrypted-total")).isEqualTo(-1);
    assertThat(Jmx.consumer(id, "records-decrypted-total")).isEqualTo(-1);
  }
}
