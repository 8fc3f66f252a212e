package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.Configuration;
import dev.cipherlane.SharedIdentity;
import dev.cipherlane.identity.Credentials;
import dev.cipherlane.identity.Identity;
import dev.cipherlane.identity.TlsContexts;
import dev.cipherlane.testing.KeyServiceProcess;
import dev.cipherlane.transport.CipherlaneSslEngineFactory;
import java.nio.file.Path;
import java.security.cert.Certificate;
import java.util.List;
import java.util.Map;
import javax.net.ssl.SSLException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A broker's certificate is renewed: sessions of the one before it end with it. [CL-IDN-043] */
class RenewedSessionsTest {
  private static final int WHOLE = 1 << 20;
  private static final String POLICY =
      """
      version: 1
      topics: [{topics: ["*"], mode: clear}]
      grants:
        - {principals: ["spiffe://dev.cipherlane/**"], actions: [certificate], lifetime: 15s, server_names: [127.0.0.1]}
      """;

  @Test
  @Timeout(60)
  void aSessionEndsWithTheCertificate(@TempDir Path folder) throws Exception {
    try (var service = KeyServiceProcess.start(folder, POLICY, "certificates: {ca: embedded}")) {
      Map<String, Object> settings = service.settings("producer");
      settings.put("cipherlane.identity.renew", "true");
      settings.put("cipherlane.tls.server.names", "127.0.0.1");
      try (Identity identity = SharedIdentity.of(Configuration.of(settings));
          var one = factory(settings);
          var other = factory(settings)) {
        Credentials before = identity.credentials();
        var trust = new CountingTrust(TlsContexts.trustManager(before.trust().peers()));
        try (TlsEngines client =
            TlsEngines.create(TlsContexts.keyManager(before), trust, EngineKind.JDK)) {
          assertThat(shownBy(List.of(one, other, one), client)).containsOnly(before.leaf());
          assertThat(trust.checks()).isEqualTo(1);
          while (identity.credentials() == before) {
            Thread.sleep(50);
          }
          // Its own certificate holds for some seconds yet, and so would its session.
          Certificate now = identity.credentials().leaf();
          assertThat(shownBy(List.of(one, other, one), client)).containsOnly(now);
          assertThat(trust.checks()).isEqualTo(2);
        }
      }
    }
  }

  private static CipherlaneSslEngineFactory factory(Map<String, Object> settings) {
    CipherlaneSslEngineFactory factory = new CipherlaneSslEngineFactory();
    factory.configure(settings);
    return factory;
  }

  /** The certificates that they show, to one client that connects to each in turn. */
  private static List<Certificate> shownBy(
      List<CipherlaneSslEngineFactory> servers, TlsEngines client) {
    return servers.stream().map(server -> shownBy(server, client)).toList();
  }

  private static Certificate shownBy(CipherlaneSslEngineFactory server, TlsEngines client) {
    try {
      Pair pair =
          new Pair(
              Pair.client(client, "TLSv1.3"),
              server.createServerSslEngine("127.0.0.1", 40_000),
              WHOLE);
      byte[] frame = {0, 0, 0, 1, 42};
      assertThat(pair.handshake().transfer(pair.server, java.nio.ByteBuffer.wrap(frame)))
          .isEqualTo(frame);
      return pair.client.engine.getSession().getPeerCertificates()[0];
    } catch (SSLException e) {
      throw new IllegalStateException(e);
    }
  }
}
