package dev.cipherlane.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.Configuration;
import dev.cipherlane.SharedIdentity;
import dev.cipherlane.identity.Credentials;
import dev.cipherlane.identity.Identity;
import dev.cipherlane.identity.TlsContexts;
import dev.cipherlane.testing.TlsPlatform;
import dev.cipherlane.transport.engine.CountingTrust;
import dev.cipherlane.transport.engine.EngineKind;
import dev.cipherlane.transport.engine.GivenEngineFactory;
import dev.cipherlane.transport.engine.TlsEngines;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.errors.SslAuthenticationException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Who connects again to a broker is served by another of its network threads, and resumes his
 * session all the same: he verifies its certificate once.
 */
@Timeout(180)
class ResumptionTest {
  private static final int TIMES = 6;

  @TempDir Path folder;
  private TlsPlatform tls;

  /** All settings of Cipherlane hold on all listeners of a broker. */
  private void start(String engine) throws Exception {
    tls =
        TlsPlatform.start(
            folder,
            "1h",
            "--set",
            "cipherlane.tls.engine=" + engine,
            "--set",
            "cipherlane.tls.peer.ids="
                + TlsPlatform.DOMAIN
                + "broker,"
                + TlsPlatform.DOMAIN
                + "reader",
            "--set",
            "num.network.threads=3");
  }

  @AfterEach
  void stop() throws Exception {
    if (tls != null) {
      tls.close();
    }
  }

  /** A client of Kafka that forgets everything but its sessions. */
  private final class Client implements AutoCloseable {
    private final CountingTrust trust;
    private final TlsEngines engines;
    private final Map<String, Object> settings = new HashMap<>();
    private double connections;

    Client(Credentials own, String protocol) throws Exception {
      trust = new CountingTrust(TlsContexts.trustManager(own.trust().peers()));
      engines = TlsEngines.create(TlsContexts.keyManager(own), trust, EngineKind.JDK);
      settings.put("bootstrap.servers", tls.broker().bootstrap("TLS"));
      settings.put("security.protocol", "SSL");
      settings.put("ssl.enabled.protocols", protocol);
      settings.put("ssl.engine.factory.class", GivenEngineFactory.class);
      settings.put(GivenEngineFactory.ENGINES, engines);
    }

    void connect(int times) throws Exception {
      for (int i = 0; i < times; i++) {
        try (Admin admin = Admin.create(settings)) {
          assertThat(admin.describeCluster().nodes().get()).hasSize(1);
          connections += connections(admin);
        }
      }
    }

    @Override
    public void close() {
      engines.close();
    }
  }

  private static double connections(Admin admin) {
    return admin.metrics().entrySet().stream()
        .filter(metric -> metric.getKey().name().equals("connection-creation-total"))
        .mapToDouble(metric -> (double) metric.getValue().metricValue())
        .max()
        .orElseThrow();
  }

  @ParameterizedTest
  @ValueSource(strings = {"jdk", "boringssl"})
  void whoConnectsAgainResumes(String engine) throws Exception {
    start(engine);
    try (Identity identity = SharedIdentity.of(Configuration.of(tls.client("reader")));
        Client old = new Client(identity.credentials(), "TLSv1.2");
        Client modern = new Client(identity.credentials(), "TLSv1.3");
        Admin operator = Admin.create(Map.of("bootstrap.servers", tls.broker().bootstrap()))) {
      for (Client client : List.of(old, modern)) {
        client.connect(TIMES);
        assertThat(client.connections).isGreaterThanOrEqualTo(TIMES);
        assertThat(client.trust.checks()).as("of %.0f", client.connections).isEqualTo(1);
      }
      // Kafka closes the factories of threads that it ends, and makes others.
      for (String threads : List.of("2", "4", "3")) {
        TlsPlatform.alter(operator, "num.network.threads", threads);
        old.connect(2);
        modern.connect(2);
      }
      System.err.printf(
          "resumption: broker on %s, %.0f connections, %d full handshakes%n",
          engine, old.connections + modern.connections, old.trust.checks() + modern.trust.checks());
      assertThat(old.trust.checks()).isEqualTo(1);
      assertThat(modern.trust.checks()).isEqualTo(1);
    }
    refusesWhoIsNotNamed();
    assertThat(tls.broker().stderr()).doesNotContain("going on with");
  }

  private void refusesWhoIsNotNamed() throws Exception { // CL-IDN-040
    for (String own : List.of("jdk", "boringssl")) {
      Map<String, Object> settings = tls.client("stranger", "cipherlane.tls.engine", own);
      try (Admin admin = Admin.create(settings)) {
        assertThatThrownBy(() -> admin.describeCluster().nodes().get())
            .hasCauseInstanceOf(SslAuthenticationException.class);
      }
    }
  }
}
