package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.keyservice.TestCertificates;
import dev.cipherlane.testing.BrokerProcess;
import java.io.File;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.SslAuthenticationException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A real broker on BoringSSL and on the JDK's engine, with producers and consumers on each. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class KafkaTest {
  private static final String FACTORY = KeyStoreEngineFactory.class.getName();
  private static final int RECORDS = 40;

  private final TestCertificates authority = TestCertificates.create();
  private Path clientKeys;
  private Path strangerKeys;
  private Path expiredKeys;
  private BrokerProcess broker;

  @BeforeAll
  void start(@TempDir Path folder) throws Exception {
    clientKeys = Keys.of(authority, authority.client("EC")).write(folder.resolve("client.p12"));
    expiredKeys =
        Keys.of(authority, authority.expiredClient()).write(folder.resolve("expired.p12"));
    TestCertificates other = TestCertificates.create();
    strangerKeys = Keys.of(other, other.client("EC")).write(folder.resolve("stranger.p12"));
    Path serverKeys =
        Keys.of(authority, authority.server("127.0.0.1")).write(folder.resolve("server.p12"));
    List<String> options = new ArrayList<>(List.of("--topics", "jdk:1,boringssl:1"));
    options.addAll(listener("BORINGSSL", EngineKind.BORINGSSL, serverKeys));
    options.addAll(listener("JDK", EngineKind.JDK, serverKeys));
    List<Path> classPath =
        Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
            .filter(entry -> !entry.contains("kafka-clients") && !entry.contains("log4j"))
            .map(Path::of)
            .toList();
    broker = BrokerProcess.start(classPath, List.of("-Xmx512m", "-XX:+UseSerialGC"), options);
  }

  private static List<String> listener(String name, EngineKind kind, Path keys) {
    String prefix = "listener.name." + name.toLowerCase(java.util.Locale.ROOT) + ".";
    return List.of(
        "--listener",
        name + ":SSL",
        "--set",
        prefix + "ssl.engine.factory.class=" + EngineFactories.of(kind),
        "--set",
        prefix + "ssl.keystore.location=" + keys);
  }

  @AfterAll
  void stop() throws Exception {
    if (broker != null) {
      broker.close();
    }
  }

  private Map<String, Object> settings(EngineKind client, String listener, Path keys) {
    return Map.of(
        "bootstrap.servers",
        broker.bootstrap(listener),
        "security.protocol",
        "SSL",
        "ssl.engine.factory.class",
        FACTORY,
        "ssl.keystore.location",
        keys.toString(),
        EngineKind.SETTING,
        client.toString(),
        "max.request.size",
        8_000_000,
        "delivery.timeout.ms",
        60_000,
        "request.timeout.ms",
        30_000,
        "max.partition.fetch.bytes",
        8_000_000);
  }

  @ParameterizedTest
  @EnumSource(names = {"JDK", "BORINGSSL", "JDK_PLAIN"})
  void producesAndConsumes(EngineKind client) throws Exception {
    for (String listener : List.of("BORINGSSL", "JDK")) {
      List<byte[]> values = values(client.name().length());
      long first = produce(settings(client, listener, clientKeys), values);
      assertThat(consume(settings(client, listener, clientKeys), first)).isEqualTo(values.size());
    }
  }

  /** Small ones and, one in ten, big ones. */
  private static List<byte[]> values(int seed) {
    Random random = new Random(seed);
    return IntStream.range(0, RECORDS)
        .mapToObj(i -> new byte[i % 10 == 0 ? 500_000 : 1 + random.nextInt(5_000)])
        .peek(random::nextBytes)
        .toList();
  }

  /** Returns the first one's offset. */
  private static long produce(Map<String, Object> settings, List<byte[]> values) throws Exception {
    try (var producer =
        new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
      long first = -1;
      for (byte[] value : values) {
        long offset =
            producer.send(new ProducerRecord<>("jdk", checksum(value), value)).get().offset();
        first = first < 0 ? offset : first;
      }
      return first;
    }
  }

  private static byte[] checksum(byte[] value) {
    return String.valueOf(Arrays.hashCode(value)).getBytes(java.nio.charset.StandardCharsets.UTF_8);
  }

  /** Returns how many came whole. */
  private static int consume(Map<String, Object> settings, long first) {
    try (var consumer =
        new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      TopicPartition partition = new TopicPartition("jdk", 0);
      consumer.assign(List.of(partition));
      consumer.seek(partition, first);
      int whole = 0;
      for (int i = 0; i < 60 && whole < RECORDS; i++) {
        for (var each : consumer.poll(Duration.ofSeconds(1))) {
          whole += Arrays.equals(checksum(each.value()), each.key()) ? 1 : 0;
        }
      }
      return whole;
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"JDK", "BORINGSSL"})
  void refusesAStranger(EngineKind client) {
    refuses(client, strangerKeys);
  }

  @ParameterizedTest
  @EnumSource(names = {"JDK", "BORINGSSL"})
  void refusesACertificateThatHasEnded(EngineKind client) {
    refuses(client, expiredKeys);
  }

  /** Kafka must take it for a failed authentication, which is not tried again. */
  private void refuses(EngineKind client, Path keys) {
    for (String listener : List.of("BORINGSSL", "JDK")) {
      assertThatThrownBy(() -> produce(settings(client, listener, keys), values(1).subList(0, 1)))
          .isInstanceOf(ExecutionException.class)
          .hasCauseInstanceOf(SslAuthenticationException.class);
    }
  }

  @Test
  void leavesNothingInTheBrokersLog() {
    assertThat(broker.stderr().lines().filter(line -> line.contains("Exception"))).isEmpty();
  }
}
