package dev.cipherlane.kafka;

import dev.cipherlane.testing.KafkaClients;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/** Producers and consumers as an application makes them: by properties. */
final class Clients {
  private Clients() {}

  static Map<String, Object> producing(Map<String, Object> cipherlane) {
    return KafkaClients.with(
        KafkaClients.producing(
            Cluster.broker().bootstrap(), EncryptingProducerInterceptor.class.getName()),
        cipherlane);
  }

  static Map<String, Object> consuming(Map<String, Object> cipherlane) {
    return KafkaClients.with(
        KafkaClients.consuming(
            Cluster.broker().bootstrap(), DecryptingConsumerInterceptor.class.getName()),
        cipherlane);
  }

  static KafkaProducer<byte[], byte[]> producer() {
    return new KafkaProducer<>(producing(Cluster.keyService().settings("producer")));
  }

  static KafkaConsumer<byte[], byte[]> consumer() {
    return new KafkaConsumer<>(consuming(Cluster.keyService().settings("consumer")));
  }

  /** A producer that knows nothing of Cipherlane. */
  static KafkaProducer<byte[], byte[]> plainProducer() {
    return new KafkaProducer<>(KafkaClients.producing(Cluster.broker().bootstrap(), ""));
  }

  /** A consumer that knows nothing of Cipherlane: it sees what is stored. */
  static KafkaConsumer<byte[], byte[]> plainConsumer() {
    return new KafkaConsumer<>(KafkaClients.consuming(Cluster.broker().bootstrap(), ""));
  }

  static void create(String topic, int partitions) throws Exception {
    try (Admin admin = Admin.create(producing(Map.of()))) {
      NewTopic created = new NewTopic(topic, Optional.of(partitions), Optional.empty());
      admin.createTopics(List.of(created)).all().get();
    }
  }

  /** Sends, and waits until the broker has it. */
  static <K, V> RecordMetadata send(KafkaProducer<K, V> producer, ProducerRecord<K, V> record) {
    try {
      return producer.send(record).get();
    } catch (ExecutionException | InterruptedException e) {
      throw new AssertionError("the broker did not take the record", e);
    }
  }

  /** Sends them all at once, and waits until the broker has them. */
  static <K, V> void send(KafkaProducer<K, V> producer, List<ProducerRecord<K, V>> records) {
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    records.forEach(record -> sent.add(producer.send(record)));
    for (Future<RecordMetadata> one : sent) {
      try {
        one.get();
      } catch (ExecutionException | InterruptedException e) {
        throw new AssertionError("the broker did not take a record", e);
      }
    }
  }

  /** What the broker stores. */
  static List<byte[]> stored(String topic, int count) {
    try (KafkaConsumer<byte[], byte[]> consumer = plainConsumer()) {
      return KafkaClients.read(consumer, topic, count).stream().map(ConsumerRecord::value).toList();
    }
  }
}
