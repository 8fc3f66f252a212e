package dev.cipherlane.kafka;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Producers and consumers as an application makes them: by properties. */
final class Clients {
  private static final Duration WAIT = Duration.ofSeconds(20);

  private Clients() {}

  /** Adds names and values in turn. */
  static Map<String, Object> with(Map<String, Object> settings, Object... more) {
    Map<String, Object> all = new HashMap<>(settings);
    for (int i = 0; i < more.length; i += 2) {
      all.put((String) more[i], more[i + 1]);
    }
    return all;
  }

  /** Adds settings, which go before. */
  static Map<String, Object> with(Map<String, Object> settings, Map<String, Object> more) {
    Map<String, Object> all = new HashMap<>(settings);
    all.putAll(more);
    return all;
  }

  static Map<String, Object> producing(Map<String, Object> cipherlane) {
    return with(
        cipherlane,
        "bootstrap.servers",
        Cluster.broker().bootstrap(),
        "key.serializer",
        ByteArraySerializer.class.getName(),
        "value.serializer",
        ByteArraySerializer.class.getName(),
        "interceptor.classes",
        EncryptingProducerInterceptor.class.getName());
  }

  static Map<String, Object> consuming(Map<String, Object> cipherlane) {
    return with(
        cipherlane,
        "bootstrap.servers",
        Cluster.broker().bootstrap(),
        "group.id",
        "group-" + UUID.randomUUID(),
        "auto.offset.reset",
        "earliest",
        "enable.auto.commit",
        "false",
        "key.deserializer",
        ByteArrayDeserializer.class.getName(),
        "value.deserializer",
        ByteArrayDeserializer.class.getName(),
        "interceptor.classes",
        DecryptingConsumerInterceptor.class.getName());
  }

  static KafkaProducer<byte[], byte[]> producer() {
    return new KafkaProducer<>(producing(Cluster.keyService().settings("producer")));
  }

  static KafkaConsumer<byte[], byte[]> consumer() {
    return new KafkaConsumer<>(consuming(Cluster.keyService().settings("consumer")));
  }

  /** A producer that knows nothing of Cipherlane. */
  static KafkaProducer<byte[], byte[]> plainProducer() {
    return new KafkaProducer<>(with(producing(Map.of()), "interceptor.classes", ""));
  }

  /** A consumer that knows nothing of Cipherlane: it sees what is stored. */
  static KafkaConsumer<byte[], byte[]> plainConsumer() {
    return new KafkaConsumer<>(with(consuming(Map.of()), "interceptor.classes", ""));
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

  /** Reads as many records as there should be, and then looks whether there is one more. */
  static <K, V> List<ConsumerRecord<K, V>> read(
      KafkaConsumer<K, V> consumer, String topic, int count) {
    assign(consumer, topic);
    List<ConsumerRecord<K, V>> records = new ArrayList<>();
    long end = System.nanoTime() + WAIT.toNanos();
    while (records.size() < count && System.nanoTime() < end) {
      consumer.poll(Duration.ofMillis(200)).forEach(records::add);
    }
    consumer.poll(Duration.ofMillis(200)).forEach(records::add);
    return records;
  }

  /** All partitions of a topic: quicker than waiting for a group to form. */
  static void assign(KafkaConsumer<?, ?> consumer, String topic) {
    consumer.assign(
        consumer.partitionsFor(topic).stream()
            .map(partition -> new TopicPartition(topic, partition.partition()))
            .toList());
  }

  /** What the broker stores. */
  static List<byte[]> stored(String topic, int count) {
    try (KafkaConsumer<byte[], byte[]> consumer = plainConsumer()) {
      return read(consumer, topic, count).stream().map(ConsumerRecord::value).toList();
    }
  }
}
