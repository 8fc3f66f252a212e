package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.Configuration;
import dev.cipherlane.SharedIdentity;
import dev.cipherlane.identity.Credentials;
import dev.cipherlane.identity.Identity;
import dev.cipherlane.identity.TlsContexts;
import dev.cipherlane.testing.KeyServiceProcess;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.CertificateExpiredException;
import java.security.cert.CertificateNotYetValidException;
import java.security.cert.PKIXBuilderParameters;
import java.security.cert.TrustAnchor;
import java.security.cert.X509CertSelector;
import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import java.util.Map;
import java.util.stream.Collectors;
import javax.net.ssl.CertPathTrustManagerParameters;
import javax.net.ssl.SSLException;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Handshakes with a certificate that the key service gave a moment ago, where the verifier's clock
 * is wrong: it begins five minutes before [CL-IDN-025].
 */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class ClockSkewTest {
  private static final String POLICY =
      """
      version: 1
      topics: [{topics: ["*"], mode: clear}]
      grants:
        - {principals: ["spiffe://dev.cipherlane/**"], actions: [certificate], lifetime: 1h, server_names: [127.0.0.1]}
      """;
  private static final int WHOLE = 1 << 20;

  private KeyServiceProcess service;
  private Identity identity;
  private Instant asked;
  private Instant given;

  @BeforeAll
  void start(@TempDir Path folder) throws Exception {
    service = KeyServiceProcess.start(folder, POLICY, "certificates: {ca: embedded}");
    Map<String, Object> settings = service.settings("producer");
    settings.put("cipherlane.identity.renew", "true");
    settings.put("cipherlane.tls.server.names", "127.0.0.1");
    asked = Instant.now();
    identity = SharedIdentity.of(Configuration.of(settings));
    identity.credentials();
    given = Instant.now();
  }

  @AfterAll
  void stop() throws Exception {
    if (identity != null) {
      identity.close();
    }
    if (service != null) {
      service.close();
    }
  }

  /** Verifies peers as somebody does whose clock shows this. */
  private X509ExtendedTrustManager at(Instant time) throws GeneralSecurityException {
    var anchors =
        identity.credentials().trust().peers().stream()
            .map(ca -> new TrustAnchor(ca, null))
            .collect(Collectors.toSet());
    var parameters = new PKIXBuilderParameters(anchors, new X509CertSelector());
    parameters.setRevocationEnabled(false);
    parameters.setDate(Date.from(time));
    TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
    factory.init(new CertPathTrustManagerParameters(parameters));
    return (X509ExtendedTrustManager) factory.getTrustManagers()[0];
  }

  /** A handshake of two that both show this certificate. */
  private void handshake(
      EngineKind kind, Instant clientsClock, Instant serversClock, String protocol)
      throws Exception {
    Credentials own = identity.credentials();
    try (TlsEngines clients =
            TlsEngines.create(TlsContexts.keyManager(own), at(clientsClock), kind);
        TlsEngines servers =
            TlsEngines.create(TlsContexts.keyManager(own), at(serversClock), kind)) {
      new Pair(clients, servers, protocol, WHOLE).handshake();
    }
  }

  @ParameterizedTest
  @CsvSource({"JDK, TLSv1.2", "JDK, TLSv1.3", "BORINGSSL, TLSv1.2", "BORINGSSL, TLSv1.3"})
  void takesClocksUpToFiveMinutesBehind(EngineKind kind, String protocol) throws Exception {
    Instant behind = given.minus(Duration.ofMinutes(4).plusSeconds(50));
    handshake(kind, given, behind, protocol);
    handshake(kind, behind, given, protocol);
    handshake(kind, behind, behind, protocol);
  }

  @ParameterizedTest
  @CsvSource({"JDK, TLSv1.2", "JDK, TLSv1.3", "BORINGSSL, TLSv1.2", "BORINGSSL, TLSv1.3"})
  void refusesWhatHasNotBegunOrHasEnded(EngineKind kind, String protocol) {
    Instant behind = asked.minus(Duration.ofMinutes(5).plusSeconds(10));
    Instant ahead = given.plus(Duration.ofHours(1).plusSeconds(10));
    refused(CertificateNotYetValidException.class, kind, given, behind, protocol);
    refused(CertificateNotYetValidException.class, kind, behind, given, protocol);
    refused(CertificateExpiredException.class, kind, given, ahead, protocol);
    refused(CertificateExpiredException.class, kind, ahead, given, protocol);
  }

  private void refused(
      Class<? extends Exception> why,
      EngineKind kind,
      Instant clientsClock,
      Instant serversClock,
      String protocol) {
    var refused =
        assertThatThrownBy(() -> handshake(kind, clientsClock, serversClock, protocol))
            .isInstanceOf(SSLException.class);
    if (kind == EngineKind.JDK) {
      refused.hasRootCauseInstanceOf(why);
    } else { // which tells the peer before it throws, so the peer is who throws first
      refused.hasMessageContaining("CERTIFICATE_EXPIRED");
    }
  }
}
