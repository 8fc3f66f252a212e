package dev.cipherlane.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.testing.TlsPlatform;
import io.netty.handler.ssl.util.InsecureTrustManagerFactory;
import java.lang.management.ManagementFactory;
import java.net.Socket;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.errors.SslAuthenticationException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Clients and a broker over mutual TLS with certificates from the key service. */
class MutualTlsTest {
  private static final byte[] VALUE = "value".getBytes(java.nio.charset.StandardCharsets.UTF_8);
  private static final int ROTATION_SECONDS = Integer.getInteger("rotation.seconds", 20);

  @TempDir static Path folder;
  private static TlsPlatform tls;

  @BeforeAll
  static void start() throws Exception {
    tls = TlsPlatform.start(folder).allow("writer");
  }

  @AfterAll
  static void stop() throws Exception {
    if (tls != null) {
      tls.close();
    }
  }

  private static RecordMetadata send(Map<String, Object> settings) throws Exception {
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
      return producer.send(new ProducerRecord<>("claims", VALUE)).get();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"TLSv1.3", "TLSv1.2"})
  void brokersKnowClientsByTheirSpiffeId(String protocol) throws Exception { // CL-IDN-041
    assertThat(send(tls.client("writer", "ssl.enabled.protocols", protocol)).hasOffset()).isTrue();
    assertThatThrownBy(() -> send(tls.client("stranger", "ssl.enabled.protocols", protocol)))
        .satisfies(
            e ->
                assertThat(e instanceof ExecutionException ? e.getCause() : e)
                    .isInstanceOf(TopicAuthorizationException.class));
  }

  private static void refusedAtOnce(Map<String, Object> settings) {
    long begin = System.nanoTime();
    assertThatThrownBy(() -> send(settings))
        .satisfies(
            e ->
                assertThat(e instanceof ExecutionException ? e.getCause() : e)
                    .isInstanceOf(SslAuthenticationException.class));
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(50));
  }

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "boringssl"})
  void wrongPeersAreRefusedAtOnce(String engine) throws Exception { // CL-IDN-040
    String kind = "cipherlane.tls.engine";
    String peers = "cipherlane.tls.peer.ids";
    refusedAtOnce(tls.client("writer", kind, engine, peers, TlsPlatform.DOMAIN + "other"));
    refusedAtOnce(tls.client("writer", kind, engine, peers, TlsPlatform.DOMAIN + "broker/**"));
    String here = tls.broker().bootstrap("TLS").replace("127.0.0.1", "localhost");
    refusedAtOnce(tls.client("writer", kind, engine, "bootstrap.servers", here));
    // The certificates of the laptop mode chain to another CA than those that it gives out.
    refusedAtOnce(tls.over(tls.service().settings("producer"), kind, engine));
    String right = "spiffe://elsewhere/x, " + TlsPlatform.DOMAIN + "brok*";
    assertThat(send(tls.client("writer", kind, engine, peers, right))).isNotNull();
  }

  /** Every certificate, the broker's too, is replaced several times, and nothing fails. */
  @ParameterizedTest
  @ValueSource(strings = {"TLSv1.3", "TLSv1.2"})
  void nothingFailsWhileCertificatesChange(String protocol) throws Exception { // CL-IDN-042
    Map<String, Object> settings =
        tls.client("writer", "ssl.enabled.protocols", protocol, "linger.ms", "5");
    long first;
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings);
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
      var partition = new org.apache.kafka.common.TopicPartition("claims", 0);
      consumer.assign(List.of(partition));
      consumer.seekToEnd(List.of(partition));
      first = consumer.position(partition);
      long end = System.nanoTime() + Duration.ofSeconds(ROTATION_SECONDS).toNanos();
      long read = 0;
      while (System.nanoTime() < end) {
        sent.add(producer.send(new ProducerRecord<>("claims", VALUE)));
        read += consumer.poll(Duration.ofMillis(2)).count();
      }
      for (Future<RecordMetadata> one : sent) {
        assertThat(one.get().hasOffset()).isTrue();
      }
      while (read < sent.size()) {
        int more = consumer.poll(Duration.ofSeconds(20)).count();
        assertThat(more).isPositive();
        read += more;
      }
      assertThat(consumer.position(partition) - first).as("no duplicates").isEqualTo(sent.size());
      double connections =
          producer.metrics().entrySet().stream()
              .filter(metric -> metric.getKey().name().equals("connection-creation-total"))
              .mapToDouble(metric -> (double) metric.getValue().metricValue())
              .max()
              .orElseThrow();
      assertThat((int) connections).isGreaterThan(ROTATION_SECONDS / 16);
      System.err.printf(
          "rotation: %s, %d s, %d records, none failed, %.0f connections of the producer%n",
          protocol, ROTATION_SECONDS, sent.size(), connections);
    }
  }

  /** Without interceptors there are no other numbers of Cipherlane. */
  @Test
  void theCertificateIsSeenInJmx() throws Exception {
    Map<String, Object> settings = tls.client("writer");
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings);
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
      producer.send(new ProducerRecord<>("claims", VALUE)).get();
      assertThat(secondsLeft("writer")).singleElement().matches(left -> left > 0 && left <= 15);
      assertThat(consumer.partitionsFor("claims")).hasSize(1);
      assertThat(secondsLeft("writer")).as("they share it").hasSize(1);
    }
    assertThat(secondsLeft("writer")).as("gone").isEmpty();
  }

  /** Of each certificate of that principal in this Java machine. */
  private static List<Double> secondsLeft(String name) throws Exception {
    MBeanServer beans = ManagementFactory.getPlatformMBeanServer();
    List<Double> found = new ArrayList<>();
    for (ObjectName bean :
        beans.queryNames(new ObjectName("dev.cipherlane:type=identity,*"), null)) {
      if (beans.getAttribute(bean, "Principal").equals(TlsPlatform.DOMAIN + name)) {
        found.add((Double) beans.getAttribute(bean, "CertificateSecondsLeft"));
      }
    }
    return found;
  }

  @Test
  @Timeout(60)
  void settingsOfTheBrokerMayBeAltered() throws Exception {
    try (Admin admin = Admin.create(tls.client("broker"))) {
      TlsPlatform.alter(admin, "max.connections", "1000");
      TlsPlatform.alter(admin, "listener.name.tls.ssl.client.auth", "requested");
    }
    assertThat(send(tls.client("writer")).hasOffset()).isTrue();
    assertThatThrownBy(this::connectWithoutCertificate) // whatever Kafka's own setting says
        .isInstanceOf(SSLException.class)
        .hasMessageContaining("certificate");
  }

  /** Gets an answer, or hears why not: with TLS 1.3 only after its own end of the handshake. */
  private void connectWithoutCertificate() throws Exception {
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(null, InsecureTrustManagerFactory.INSTANCE.getTrustManagers(), null);
    URI address = URI.create("ssl://" + tls.broker().bootstrap("TLS"));
    try (Socket socket =
        context.getSocketFactory().createSocket(address.getHost(), address.getPort())) {
      socket.setSoTimeout(10_000);
      byte[] apiVersions = {0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 1, -1, -1};
      socket.getOutputStream().write(apiVersions);
      assertThat(socket.getInputStream().read()).isNegative();
    }
  }
}
