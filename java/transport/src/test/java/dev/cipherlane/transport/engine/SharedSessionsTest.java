package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.Configuration;
import dev.cipherlane.Settings;
import dev.cipherlane.SharedIdentity;
import dev.cipherlane.identity.TlsFiles;
import dev.cipherlane.keyservice.TestCertificates;
import dev.cipherlane.transport.CipherlaneSslEngineFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A broker's factories, of which Kafka makes one for each network thread and listener: which of
 * them resume sessions of each other. A session is resumed where no certificate is verified again.
 * [CL-IDN-043]
 */
class SharedSessionsTest {
  private static final int WHOLE = 1 << 20;
  private static final TestCertificates AUTHORITY = TestCertificates.create();

  @TempDir static Path folder;

  private final List<AutoCloseable> made = new ArrayList<>();
  private CountingTrust byClient;
  private TlsEngines client;
  private Map<String, Object> settings;

  static Stream<Arguments> engines() {
    return Stream.of("jdk", "boringssl")
        .flatMap(kind -> Stream.of("TLSv1.2", "TLSv1.3").map(tls -> Arguments.of(kind, tls)));
  }

  @BeforeEach
  void connectFromOneCache() throws Exception {
    Keys keys = Keys.of(AUTHORITY, AUTHORITY.client("EC"));
    byClient = new CountingTrust(keys.trustManager());
    client = TlsEngines.create(keys.keyManager(), byClient, EngineKind.JDK);
    made.add(client);
    TlsFiles files = AUTHORITY.files(folder, AUTHORITY.server("127.0.0.1"));
    settings =
        Settings.map(
            "cipherlane.keyservice.tls.ca", files.ca().toString(),
            "cipherlane.keyservice.tls.certificate", files.certificate().toString(),
            "cipherlane.keyservice.tls.key", files.key().toString());
  }

  @AfterEach
  void closeAll() throws Exception {
    for (AutoCloseable each : made) {
      each.close();
    }
  }

  private CipherlaneSslEngineFactory factory(String kind, String... more) {
    Map<String, Object> all = new HashMap<>(settings);
    all.put(EngineKind.SETTING, kind);
    for (int i = 0; i < more.length; i += 2) {
      all.put(more[i], more[i + 1]);
    }
    CipherlaneSslEngineFactory factory = new CipherlaneSslEngineFactory();
    factory.configure(all);
    made.add(factory);
    return factory;
  }

  /** Connects, carries something both ways, and closes. */
  private void connect(CipherlaneSslEngineFactory server, String protocol) throws SSLException {
    SSLEngine accepting = server.createServerSslEngine("127.0.0.1", 40_000);
    Pair pair = new Pair(Pair.client(client, protocol), accepting, WHOLE);
    EngineTest.carryOneFrameEach(pair.handshake());
  }

  @ParameterizedTest
  @MethodSource("engines")
  void anyResumesWhatAnotherBegan(String kind, String protocol) throws Exception {
    var threads = List.of(factory(kind), factory(kind), factory(kind));
    for (int i = 0; i < 9; i++) {
      connect(threads.get(i % 3), protocol);
    }
    assertThat(byClient.checks()).as("of nine handshakes").isEqualTo(1);
  }

  @ParameterizedTest
  @MethodSource("engines")
  void theEndOfOneIsNotTheEndOfOthers(String kind, String protocol) throws Exception {
    var first = factory(kind);
    var second = factory(kind);
    connect(first, protocol);
    connect(second, protocol);
    first.close();
    first.close();
    connect(second, protocol);
    connect(factory(kind), protocol);
    assertThat(byClient.checks()).isEqualTo(1);
    assertThatThrownBy(() -> first.createServerSslEngine("127.0.0.1", 40_000))
        .hasMessageContaining("closed");
  }

  @ParameterizedTest
  @MethodSource("engines")
  void nothingOutlivesTheLast(String kind, String protocol) throws Exception {
    made.add(SharedIdentity.of(Configuration.of(settings))); // so the certificate stays the same
    for (int i = 0; i < 2; i++) {
      var first = factory(kind);
      var second = factory(kind);
      connect(first, protocol);
      connect(second, protocol);
      first.close();
      second.close();
    }
    assertThat(byClient.checks()).isEqualTo(2);
  }

  @ParameterizedTest
  @MethodSource("engines")
  void otherSettingsHaveOtherSessions(String kind, String protocol) throws Exception {
    var others =
        List.of(
            factory(kind),
            factory(kind, "cipherlane.tls.peer.ids", "spiffe://test/*"),
            factory(kind, "ssl.enabled.protocols", protocol),
            factory(kind, "ssl.cipher.suites", suite(protocol)),
            factory("jdk-plain"));
    for (int round = 0; round < 2; round++) {
      for (CipherlaneSslEngineFactory each : others) {
        connect(each, protocol);
      }
    }
    assertThat(byClient.checks()).as("a change of the listener forgets it").isEqualTo(10);
  }

  private static String suite(String protocol) {
    return protocol.equals("TLSv1.3")
        ? "TLS_AES_256_GCM_SHA384"
        : "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
  }

  @ParameterizedTest
  @MethodSource("engines")
  void whoIsNotNamedGetsInNowhereElse(String kind, String protocol) throws Exception {
    connect(factory(kind), protocol);
    for (String names : List.of("spiffe://test/other", "spiffe://test/client/**", "spiffe://x/*")) {
      var strict = factory(kind, "cipherlane.tls.peer.ids", names);
      assertThatThrownBy(() -> connect(strict, protocol)).isInstanceOf(SSLException.class);
    }
    connect(factory(kind), protocol);
    assertThat(byClient.checks()).as("verified again after each refusal").isGreaterThan(1);
  }

  /** BoringSSL's cache of clients' sessions does not look at how names were to be checked. */
  @Test
  void clientsShareNothing() throws Exception {
    Keys keys = Keys.of(AUTHORITY, AUTHORITY.server("127.0.0.1"));
    for (String kind : List.of("jdk", "boringssl")) {
      CountingTrust byServer = new CountingTrust(keys.trustManager());
      TlsEngines server = TlsEngines.create(keys.keyManager(), byServer, EngineKind.JDK);
      made.add(server);
      for (int i = 0; i < 2; i++) {
        SSLEngine connecting = factory(kind).createClientSslEngine("127.0.0.1", 9092, "HTTPS");
        new Pair(connecting, Pair.server(server, "TLSv1.3"), WHOLE).handshake();
      }
      assertThat(byServer.checks()).as(kind).isEqualTo(2);
    }
  }
}
