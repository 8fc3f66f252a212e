package dev.cipherlane.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.Configuration;
import dev.cipherlane.SharedIdentity;
import dev.cipherlane.identity.Credentials;
import dev.cipherlane.identity.Identity;
import dev.cipherlane.identity.TlsContexts;
import dev.cipherlane.testing.TlsPlatform;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocket;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The CA of brokers and clients is replaced while a producer sends. */
@Timeout(90)
class CaRolloverTest {
  private static final int BATCH = 50;
  private static final byte[] VALUE = "value".getBytes(StandardCharsets.UTF_8);

  /** The shortest that there is: renewed after six seconds or a little more. */
  private static final String LIFETIME = "10s";

  @TempDir static Path folder;

  @Test
  void noSendFailsWhileTheCaIsReplaced() throws Exception { // CL-IDN-024 CL-IDN-034
    try (TlsPlatform tls = TlsPlatform.start(folder, LIFETIME).allow("writer")) {
      Map<String, Object> settings = tls.client("writer", "linger.ms", "5");
      AtomicBoolean enough = new AtomicBoolean();
      try (Identity identity = SharedIdentity.of(Configuration.of(settings))) {
        Credentials before = identity.credentials();
        CompletableFuture<Integer> sent =
            CompletableFuture.supplyAsync(() -> sendUntil(enough, settings));
        tls.service().operate("ca", "begin");
        allRenewed(tls);
        Credentials between = identity.credentials();
        assertThat(between.trust().peers()).hasSize(2);
        assertThat(brokersCa(tls, between)).isEqualTo(issuer(before.leaf()));
        tls.service().operate("ca", "finish", "--force");
        allRenewed(tls);
        Credentials after = identity.credentials();
        assertThat(issuer(after.leaf())).isNotEqualTo(issuer(before.leaf()));
        assertThat(brokersCa(tls, after)).isEqualTo(issuer(after.leaf()));
        assertThatThrownBy(() -> brokersCa(tls, before)).isInstanceOf(SSLException.class);
        enough.set(true);
        assertThat(sent.get()).isGreaterThan(5 * BATCH);
      }
    }
  }

  /**
   * Sends with one producer after another, so that connections are made at any time; returns how
   * many records were acknowledged, which are all.
   */
  private static int sendUntil(AtomicBoolean enough, Map<String, Object> settings) {
    int acknowledged = 0;
    try {
      while (!enough.get()) {
        acknowledged += send(settings);
      }
      return acknowledged;
    } catch (ExecutionException | InterruptedException e) {
      throw new IllegalStateException("after " + acknowledged + " records", e);
    }
  }

  private static int send(Map<String, Object> settings)
      throws ExecutionException, InterruptedException {
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings)) {
      for (int i = 0; i < BATCH; i++) {
        sent.add(producer.send(new ProducerRecord<>("claims", VALUE)));
        Thread.sleep(5);
      }
      for (Future<RecordMetadata> one : sent) {
        one.get();
      }
      return sent.size();
    }
  }

  /** Waits until broker and client have each got a certificate. */
  private static void allRenewed(TlsPlatform tls) throws Exception {
    long broker = tls.issued("broker");
    long writer = tls.issued("writer");
    while (tls.issued("broker") == broker || tls.issued("writer") == writer) {
      Thread.sleep(100);
    }
    Thread.sleep(500); // until what was given is in use
  }

  private static X500Principal issuer(X509Certificate certificate) {
    return certificate.getIssuerX500Principal();
  }

  /** Whose certificate the broker shows now to somebody who trusts the CAs of these credentials. */
  private static X500Principal brokersCa(TlsPlatform tls, Credentials own)
      throws IOException, GeneralSecurityException {
    String[] address = tls.broker().bootstrap("TLS").split(":", 2);
    try (SSLSocket socket =
        (SSLSocket)
            TlsContexts.context(Optional.of(own), own.trust().peers())
                .getSocketFactory()
                .createSocket(address[0], Integer.parseInt(address[1]))) {
      socket.startHandshake();
      return issuer((X509Certificate) socket.getSession().getPeerCertificates()[0]);
    }
  }
}
