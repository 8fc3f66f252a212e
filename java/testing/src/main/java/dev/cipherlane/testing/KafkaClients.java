package dev.cipherlane.testing;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Properties of producers and consumers of {@code byte[]}, as an application has them, and how
 * tests read a topic to its end. The only class here that knows Kafka; whoever uses it brings the
 * clients.
 */
public final class KafkaClients {
  // For machines that do much else at the same time.
  private static final Duration WAIT = Duration.ofSeconds(40);
  private static final Duration POLL = Duration.ofMillis(200);

  private KafkaClients() {}

  /**
   * Adds settings.
   *
   * @param settings not changed
   * @param more names and values in turn, which go before
   * @return a new map
   */
  public static Map<String, Object> with(Map<String, Object> settings, Object... more) {
    Map<String, Object> all = new HashMap<>(settings);
    for (int i = 0; i < more.length; i += 2) {
      all.put((String) more[i], more[i + 1]);
    }
    return all;
  }

  /**
   * Adds settings.
   *
   * @param settings not changed
   * @param more settings, which go before
   * @return a new map
   */
  public static Map<String, Object> with(Map<String, Object> settings, Map<String, Object> more) {
    Map<String, Object> all = new HashMap<>(settings);
    all.putAll(more);
    return all;
  }

  /**
   * Gives the properties of a producer.
   *
   * @param bootstrap the broker's address
   * @param interceptor its class; "" for none
   * @return a new map
   */
  public static Map<String, Object> producing(String bootstrap, String interceptor) {
    return with(
        Map.of(),
        "bootstrap.servers",
        bootstrap,
        "key.serializer",
        ByteArraySerializer.class.getName(),
        "value.serializer",
        ByteArraySerializer.class.getName(),
        "interceptor.classes",
        interceptor);
  }

  /**
   * Gives the properties of a consumer that reads from the beginning, in a group of its own.
   *
   * @param bootstrap the broker's address
   * @param interceptor its class; "" for none
   * @return a new map
   */
  public static Map<String, Object> consuming(String bootstrap, String interceptor) {
    return with(
        Map.of(),
        "bootstrap.servers",
        bootstrap,
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
        interceptor);
  }

  /**
   * Has a consumer read all partitions of a topic: quicker than waiting for a group to form.
   *
   * @param consumer the consumer
   * @param topic its topic from now on
   */
  public static void assign(KafkaConsumer<?, ?> consumer, String topic) {
    consumer.assign(
        consumer.partitionsFor(topic).stream()
            .map(partition -> new TopicPartition(topic, partition.partition()))
            .toList());
  }

  /**
   * Reads as many records as there should be, and then looks whether there is one more.
   *
   * @param <K> the type of keys
   * @param <V> the type of values
   * @param consumer the consumer, which is assigned the topic
   * @param topic what to read
   * @param count how many records there should be
   * @return what was read within 40 seconds
   */
  public static <K, V> List<ConsumerRecord<K, V>> read(
      KafkaConsumer<K, V> consumer, String topic, int count) {
    assign(consumer, topic);
    List<ConsumerRecord<K, V>> records = new ArrayList<>();
    long end = System.nanoTime() + WAIT.toNanos();
    while (records.size() < count && System.nanoTime() < end) {
      consumer.poll(POLL).forEach(records::add);
    }
    consumer.poll(POLL).forEach(records::add);
    return records;
  }
}
