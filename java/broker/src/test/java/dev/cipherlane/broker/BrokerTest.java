package dev.cipherlane.broker;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.testing.BrokerProcess;
import dev.cipherlane.testing.SegmentScanner;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What clients can do with a running broker. */
class BrokerTest {
  private static BrokerProcess broker;

  @BeforeAll
  static void start() throws IOException {
    broker =
        BrokerProcess.start(
            "--topics",
            "orders:3,canaries:1",
            "--topics",
            "more:2,typed:1",
            "--set",
            "log.retention.hours=7");
  }

  @AfterAll
  static void stop() throws IOException {
    broker.close();
  }

  @Test
  void deliversWhatWasProduced() throws Exception {
    Clients.produce(broker.bootstrap(), "orders", "one order");

    assertThat(Clients.consume(broker.bootstrap(), "orders", 1)).containsExactly("one order");
  }

  @Test
  void hasTheTopicsItWasAskedFor() throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrap()))) {
      Map<String, TopicDescription> topics =
          admin.describeTopics(List.of("orders", "canaries", "more")).allTopicNames().get();

      assertThat(topics.get("orders").partitions()).hasSize(3);
      assertThat(topics.get("canaries").partitions()).hasSize(1);
      assertThat(topics.get("more").partitions()).hasSize(2);
    }
  }

  @Test
  void passesOtherSettingsToKafka() throws Exception {
    ConfigResource self = new ConfigResource(ConfigResource.Type.BROKER, "1");
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrap()))) {
      var config = admin.describeConfigs(List.of(self)).all().get().get(self);

      assertThat(config.get("log.retention.hours").value()).isEqualTo("7");
    }
  }

  @Test
  void refusesTopicsThatNobodyCreated() {
    assertThatThrownBy(() -> Clients.produce(broker.bootstrap(), "unknown", "x"))
        .hasRootCauseInstanceOf(UnknownTopicOrPartitionException.class);
  }

  @Test
  void storesACanaryWhereTheScannerFindsItAndNoOther() throws Exception {
    String canary = "canary-" + UUID.randomUUID();
    String neverSent = "canary-" + UUID.randomUUID();
    Clients.produce(broker.bootstrap(), "canaries", "before " + canary + " after");

    SegmentScanner.Report report = scan(canary, neverSent);

    assertThat(report.hits()).hasSize(1);
    assertThat(report.hits().get(0).pattern()).isZero();
    assertThat(report.hits().get(0).file().toString()).contains("canaries-0").endsWith(".log");
    assertThat(broker.segments()).contains(report.hits().get(0).file());
    assertThat(report.bytes()).isPositive();
  }

  /** Other folders run Kafka's tools like this. */
  @Test
  void comesWithTheToolsOfTheKafkaDistribution() throws Exception {
    Path lib = Path.of(System.getProperty(BrokerProcess.JAR_PROPERTY)).resolveSibling("lib");
    Process tool =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                lib + "/*",
                "org.apache.kafka.tools.ConsoleProducer",
                "--bootstrap-server",
                broker.bootstrap(),
                "--topic",
                "typed")
            .redirectErrorStream(true)
            .start();
    try (OutputStream keyboard = tool.getOutputStream()) {
      keyboard.write("hello\n".getBytes(StandardCharsets.UTF_8));
    }

    assertThat(tool.waitFor(30, TimeUnit.SECONDS)).isTrue();
    assertThat(tool.exitValue()).isZero();
    assertThat(Clients.consume(broker.bootstrap(), "typed", 1)).containsExactly("hello");
  }

  private static SegmentScanner.Report scan(String... patterns) throws IOException {
    List<byte[]> bytes =
        List.of(patterns).stream().map(p -> p.getBytes(StandardCharsets.UTF_8)).toList();
    return new SegmentScanner(bytes).scan(broker.logDir());
  }
}
