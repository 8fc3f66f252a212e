package dev.cipherlane.integration;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.kafka.DecryptingConsumerInterceptor;
import dev.cipherlane.kafka.EncryptingProducerInterceptor;
import dev.cipherlane.testing.Platform;
import dev.cipherlane.testing.SegmentScanner;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
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

  private static final Duration WAIT = Duration.ofSeconds(40);

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
    return with(settings, "cipherlane.keys.deadline.ms", "40000");
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

  /** Adds names and values in turn. */
  static Map<String, Object> with(Map<String, Object> settings, Object... more) {
    Map<String, Object> all = new HashMap<>(settings);
    for (int i = 0; i < more.length; i += 2) {
      all.put((String) more[i], more[i + 1]);
    }
    return all;
  }

  static Map<String, Object> producing() {
    return with(
        cipherlane(),
        "bootstrap.servers",
        bootstrap(),
        "key.serializer",
        ByteArraySerializer.class.getName(),
        "value.serializer",
        ByteArraySerializer.class.getName(),
        "interceptor.classes",
        EncryptingProducerInterceptor.class.getName());
  }

  static Map<String, Object> consuming() {
    return with(
        cipherlane(),
        "bootstrap.servers",
        bootstrap(),
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

  /** Counts what a topic holds. */
  static long ends(KafkaConsumer<?, ?> consumer, String topic) {
    List<TopicPartition> partitions =
        consumer.partitionsFor(topic).stream()
            .map(partition -> new TopicPartition(topic, partition.partition()))
            .toList();
    return consumer.endOffsets(partitions).values().stream().mapToLong(Long::longValue).sum();
  }

  /** Reads as many records as there should be, and then looks whether there is one more. */
  static <K, V> List<ConsumerRecord<K, V>> read(
      KafkaConsumer<K, V> consumer, String topic, int count) {
    consumer.assign(
        consumer.partitionsFor(topic).stream()
            .map(partition -> new TopicPartition(topic, partition.partition()))
            .toList());
    List<ConsumerRecord<K, V>> records = new ArrayList<>();
    long end = System.nanoTime() + WAIT.toNanos();
    while (records.size() < count && System.nanoTime() < end) {
      consumer.poll(Duration.ofMillis(200)).forEach(records::add);
    }
    consumer.poll(Duration.ofMillis(200)).forEach(records::add);
    return records;
  }

  /** What a byte consumer with the interceptor reads of a topic. */
  static List<ConsumerRecord<byte[], byte[]>> decrypted(String topic, int count) {
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(consuming())) {
      return read(consumer, topic, count);
    }
  }

  /** What the broker stores in a topic. */
  static List<ConsumerRecord<byte[], byte[]>> stored(String topic, int count) {
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(with(consuming(), "interceptor.classes", ""))) {
      return read(consumer, topic, count);
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
        new KafkaProducer<>(with(producing(), "interceptor.classes", ""))) {
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
