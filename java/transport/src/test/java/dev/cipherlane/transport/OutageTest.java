package dev.cipherlane.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.Configuration;
import dev.cipherlane.SharedIdentity;
import dev.cipherlane.identity.Identity;
import dev.cipherlane.testing.TlsPlatform;
import java.nio.file.Path;
import java.util.Map;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.errors.TimeoutException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The key service is away for longer than the certificates of broker and client hold. */
@Timeout(180)
class OutageTest {
  /** The shortest that there is: renewed after six seconds or a little more. */
  private static final String LIFETIME = "10s";

  private static final double PAST_TWO_THIRDS = 3.3;

  @TempDir static Path folder;

  @Test
  void certificatesOutliveAnOutageToTheirEnd()
      throws Exception { // CL-IDN-032 CL-IDN-036 CL-IDN-042
    try (TlsPlatform tls = TlsPlatform.start(folder, LIFETIME).allow("writer")) {
      Map<String, Object> settings =
          tls.client(
              "writer",
              "delivery.timeout.ms",
              "1000",
              "request.timeout.ms",
              "500",
              "linger.ms",
              "0",
              // Tried again after one, three and seven seconds: soon after the end.
              "cipherlane.keys.retry.backoff.ms",
              "1000");
      try (Identity identity = SharedIdentity.of(Configuration.of(settings));
          KafkaProducer<byte[], byte[]> before = new KafkaProducer<>(settings)) {
        send(before);
        long issued = tls.issued("broker");
        while (tls.issued("broker") == issued) { // so that the client's ends first
          Thread.sleep(20);
        }
        tls.service().kill();
        waitUntilLessThan(PAST_TWO_THIRDS, identity);
        send(before);
        try (KafkaProducer<byte[], byte[]> late = new KafkaProducer<>(settings)) {
          send(late);
        }
        waitUntilLessThan(0, identity);
        assertThatThrownBy(() -> send(before)).hasRootCauseInstanceOf(TimeoutException.class);
        tls.service().start();
        tls.newTokens("broker");
        tls.newTokens("writer");
        while (!sent(before)) {
          Thread.sleep(100);
        }
        assertThat(identity.secondsLeft()).isPositive();
      }
    }
  }

  private static void send(KafkaProducer<byte[], byte[]> producer) throws Exception {
    producer.send(new ProducerRecord<>("claims", new byte[10])).get();
  }

  private static boolean sent(KafkaProducer<byte[], byte[]> producer) {
    try {
      send(producer);
      return true;
    } catch (Exception e) {
      return false;
    }
  }

  private static void waitUntilLessThan(double seconds, Identity identity) throws Exception {
    while (identity.secondsLeft() >= seconds) {
      Thread.sleep(20);
    }
  }
}
