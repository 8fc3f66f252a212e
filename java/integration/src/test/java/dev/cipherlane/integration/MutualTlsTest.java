package dev.cipherlane.integration;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.testing.KafkaClients;
import dev.cipherlane.testing.TlsPlatform;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.connect.cli.ConnectStandalone;
import org.apache.kafka.connect.file.FileStreamSinkConnector;
import org.apache.kafka.connect.file.FileStreamSourceConnector;
import org.apache.kafka.connect.storage.StringConverter;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Streams and Connect with every connection to the broker over mutual TLS by the engine factory:
 * their producers, consumers and admin clients have one identity, whose certificate is renewed
 * while they work.
 */
class MutualTlsTest {
  private static final int BATCH = 40;

  @TempDir Path folder;
  private TlsPlatform tls;

  @BeforeEach
  void start() throws Exception {
    tls = TlsPlatform.start(folder).allowAll("app");
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", tls.broker().bootstrap()))) {
      admin.createTopics(List.of(topic("input"), topic("output"), topic("lines"))).all().get();
    }
  }

  private static NewTopic topic(String name) {
    return new NewTopic(name, 1, (short) 1);
  }

  @AfterEach
  void stop() throws IOException {
    tls.close();
  }

  /** What Streams needs: internal topics are made, state is restored, transactions are used. */
  @Test
  void streams() throws Exception {
    StreamsBuilder builder = new StreamsBuilder();
    builder.<String, String>stream("input")
        .groupBy((key, value) -> value)
        .count()
        .toStream()
        .mapValues(String::valueOf)
        .to("output");
    Properties settings = new Properties();
    settings.putAll(tls.client("app"));
    settings.keySet().removeIf(name -> name.toString().endsWith("serializer"));
    settings.put("application.id", "counting");
    settings.put("state.dir", folder.resolve("state").toString());
    settings.put("default.key.serde", Serdes.StringSerde.class);
    settings.put("default.value.serde", Serdes.StringSerde.class);
    settings.put("processing.guarantee", "exactly_once_v2");
    settings.put("commit.interval.ms", "100");
    settings.put("auto.offset.reset", "earliest");
    Set<String> written = new HashSet<>(write());
    try (KafkaStreams streams = new KafkaStreams(builder.build(), settings)) {
      streams.start();
      assertThat(counted(written.size())).isEqualTo(written);
      renewedTwice();
      written.addAll(write());
      assertThat(counted(written.size())).isEqualTo(written);
    }
  }

  private Set<String> write() throws Exception {
    Set<String> written = new HashSet<>();
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(KafkaClients.producing(tls.broker().bootstrap(), ""))) {
      for (int i = 0; i < BATCH; i++) {
        String value = UUID.randomUUID().toString();
        written.add(value);
        producer.send(new ProducerRecord<>("input", Real.bytes(value))).get();
      }
    }
    return written;
  }

  /** The values that were counted once: each stands in the output as often as it was counted. */
  private Set<String> counted(int count) {
    Set<String> counted = new HashSet<>();
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(
            KafkaClients.with(
                KafkaClients.consuming(tls.broker().bootstrap(), ""),
                "isolation.level",
                "read_committed"))) {
      for (ConsumerRecord<byte[], byte[]> record : KafkaClients.read(consumer, "output", count)) {
        assertThat(Real.string(record.value())).isEqualTo("1");
        counted.add(Real.string(record.key()));
      }
    }
    return counted;
  }

  @Test
  void connect() throws Exception {
    Path input = folder.resolve("input");
    Path output = folder.resolve("output");
    List<String> lines = lines();
    Files.write(input, lines);
    try (Child worker =
        Child.start(
            folder,
            ConnectStandalone.class.getName(),
            Child.properties(folder.resolve("worker"), worker()),
            Child.properties(
                folder.resolve("source"),
                connector("source", FileStreamSourceConnector.class, "topic", input)),
            Child.properties(
                folder.resolve("sink"),
                connector("sink", FileStreamSinkConnector.class, "topics", output)))) {
      worker.await("first lines", () -> read(output).equals(lines));
      worker.await("renewals", () -> tls.issued("app") > 2);
      List<String> more = lines();
      Files.write(input, more, StandardOpenOption.APPEND);
      lines.addAll(more);
      worker.await("more lines", () -> read(output).equals(lines));
    }
  }

  private static List<String> lines() {
    List<String> lines = new ArrayList<>();
    for (int i = 0; i < BATCH; i++) {
      lines.add(UUID.randomUUID().toString());
    }
    return lines;
  }

  private static List<String> read(Path file) throws IOException {
    return Files.exists(file) ? Files.readAllLines(file) : List.of();
  }

  /** The worker itself, its producers and its consumers show the same identity. */
  private Map<String, Object> worker() throws IOException {
    Map<String, Object> identity = tls.client("app");
    identity.keySet().removeIf(name -> name.endsWith("serializer"));
    Map<String, Object> settings = new HashMap<>(identity);
    settings.put("listeners", "http://127.0.0.1:0");
    settings.put("offset.storage.file.filename", folder.resolve("offsets"));
    settings.put("offset.flush.interval.ms", "500");
    settings.put("plugin.discovery", "service_load");
    settings.put("key.converter", StringConverter.class.getName());
    settings.put("value.converter", StringConverter.class.getName());
    settings.put("consumer.auto.offset.reset", "earliest");
    identity.forEach(
        (name, value) -> {
          settings.put("producer." + name, value);
          settings.put("consumer." + name, value);
        });
    return settings;
  }

  private static Map<String, Object> connector(
      String name, Class<?> type, String topics, Path file) {
    return Map.of(
        "name",
        name,
        "connector.class",
        type.getName(),
        "tasks.max",
        "1",
        topics,
        "lines",
        "file",
        file);
  }

  /** Certificates are renewed every ten seconds. */
  private void renewedTwice() throws Exception {
    for (int i = 0; i < 600 && tls.issued("app") <= 2; i++) {
      Thread.sleep(100);
    }
    assertThat(tls.issued("app")).isGreaterThan(2);
  }
}
