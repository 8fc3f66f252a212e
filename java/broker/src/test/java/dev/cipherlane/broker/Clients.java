package dev.cipherlane.broker;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** A producer and a consumer of strings, one call each. */
final class Clients {
  private Clients() {}

  /** Sends one record, uncompressed, and returns when the broker has acknowledged it. */
  static void produce(String bootstrap, String topic, String value)
      throws InterruptedException, ExecutionException {
    Map<String, Object> config =
        Map.of("bootstrap.servers", bootstrap, "max.block.ms", 5000, "compression.type", "none");
    try (var producer =
        new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
      producer.send(new ProducerRecord<>(topic, value.getBytes(StandardCharsets.UTF_8))).get();
    }
  }

  /**
   * Reads a topic from its beginning, as a new group, until it has so many records or 15 seconds
   * have passed.
   */
  static List<String> consume(String bootstrap, String topic, int count) {
    Map<String, Object> config =
        Map.of(
            "bootstrap.servers",
            bootstrap,
            "group.id",
            "group-" + System.nanoTime(),
            "auto.offset.reset",
            "earliest");
    List<String> values = new ArrayList<>();
    try (var consumer =
        new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      consumer.subscribe(List.of(topic));
      long deadline = System.nanoTime() + Duration.ofSeconds(15).toNanos();
      while (values.size() < count && System.nanoTime() < deadline) {
        consumer
            .poll(Duration.ofMillis(200))
            .forEach(r -> values.add(new String(r.value(), StandardCharsets.UTF_8)));
      }
    }
    return values;
  }
}
