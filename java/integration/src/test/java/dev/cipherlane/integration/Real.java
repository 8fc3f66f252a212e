package dev.cipherlane.integration;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.kafka.DecryptingConsumerInterceptor;
import dev.cipherlane.kafka.EncryptingProducerInterceptor;
import dev.cipherlane.testing.KafkaClients;
import dev.cipherlane.testing.Platform;
import dev.cipherlane.testing.SegmentScanner;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** One broker and one key service for all test classes that name this extension, and clients. */
final class Real implements BeforeAllCallback {
  /**
   * The laptop mode's producer and consumer, each with both rights: Streams and Connect read and
   * write. A copy of {@code x} by MirrorMaker is {@code source.x}.
   */
  private static final String POLICY =
      """
      version: 1
      lease: {expires_in: 5m}
      topics:
        - topics: ["mirrored", "source.mirrored"]
          mode: encrypt
          scope: mirrored
        - topics: ["app-*"]
          mode: encrypt
          scope: app
        - topics: ["control", "heartbeats", "mm2-*", "*.internal", "*.heartbeats"]
          mode: clear
        - topics: ["*"]
          mode: encrypt
      grants:
        - principals: ["spiffe://dev.cipherlane/producer", "spiffe://dev.cipherlane/consumer"]
          actions: [encrypt, decrypt]
          topics: ["*"]
      """;

  private static Platform running;

  @Override
  public void beforeAll(ExtensionContext context) {
    var store = context.getRoot().getStore(ExtensionContext.Namespace.create(Real.class));
    running = store.computeIfAbsent(Platform.class, key -> start(), Platform.class);
  }

  private static Platform start() {
    try {
      return Platform.start(POLICY);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  static String bootstrap() {
    return running.broker().bootstrap();
  }

  /** Where the key service is and who is asking. */
  static Map<String, Object> cipherlane() {
    return patient(running.keyService().settings("producer"));
  }

  /** The same for a principal that may do nothing. */
  static Map<String, Object> strangersSettings() {
    return patient(running.keyService().settings("stranger"));
  }

  /** For machines that do much else at the same time. */
  private static Map<String, Object> patient(Map<String, Object> settings) {
    return KafkaClients.with(settings, "cipherlane.keys.deadline.ms", "40000");
  }

  /** The same as names and values in turn. */
  static Object[] strangers() {
    List<Object> settings = new ArrayList<>();
    strangersSettings()
        .forEach(
            (name, value) -> {
              settings.add(name);
              settings.add(value);
            });
    return settings.toArray();
  }

  static Map<String, Object> producing() {
    return KafkaClients.with(
        KafkaClients.producing(bootstrap(), EncryptingProducerInterceptor.class.getName()),
        cipherlane());
  }

  static Map<String, Object> consuming() {
    return KafkaClients.with(
        KafkaClients.consuming(bootstrap(), DecryptingConsumerInterceptor.class.getName()),
        cipherlane());
  }

  /** Counts what a topic holds. */
  static long ends(KafkaConsumer<?, ?> consumer, String topic) {
    List<TopicPartition> partitions =
        consumer.partitionsFor(topic).stream()
            .map(partition -> new TopicPartition(topic, partition.partition()))
            .toList();
    return consumer.endOffsets(partitions).values().stream().mapToLong(Long::longValue).sum();
  }

  /** What a byte consumer with the interceptor reads of a topic. */
  static List<ConsumerRecord<byte[], byte[]>> decrypted(String topic, int count) {
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(consuming())) {
      return KafkaClients.read(consumer, topic, count);
    }
  }

  /** What the broker stores in a topic. */
  static List<ConsumerRecord<byte[], byte[]>> stored(String topic, int count) {
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(KafkaClients.consuming(bootstrap(), ""))) {
      return KafkaClients.read(consumer, topic, count);
    }
  }

  static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  static String string(byte[] bytes) {
    return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
  }

  static void assertEnvelopes(String topic, int count) {
    assertThat(stored(topic, count))
        .hasSize(count)
        .allSatisfy(record -> assertThat(record.value()).startsWith(0xC1, 0x9E, 1));
  }

  /** Searches all that the broker stores, and shows that the search finds what is there. */
  static void assertNotStored(Collection<String> canaries) throws Exception {
    String control = "control " + UUID.randomUUID();
    try (KafkaProducer<byte[], byte[]> plain =
        new KafkaProducer<>(KafkaClients.producing(bootstrap(), ""))) {
      plain.send(new ProducerRecord<>("control", bytes(control))).get();
    }
    List<byte[]> patterns = new ArrayList<>();
    canaries.forEach(canary -> patterns.add(bytes(canary)));
    patterns.add(bytes(control));
    assertThat(new SegmentScanner(patterns).scan(running.broker().logDir()).hits())
        .as("only the control value, which is pattern %d", patterns.size() - 1)
        .extracting(SegmentScanner.Hit::pattern)
        .containsExactly(patterns.size() - 1);
  }
}
