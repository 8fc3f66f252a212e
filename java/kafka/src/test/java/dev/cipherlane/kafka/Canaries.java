package dev.cipherlane.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.testing.SegmentScanner;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Values with 16 random bytes in them, which must never be found in what the broker stores. */
final class Canaries {
  private static final SecureRandom RANDOM = new SecureRandom();
  private static final byte[] TEXT =
      "the application's own plaintext".getBytes(StandardCharsets.UTF_8);

  private final List<byte[]> random = new ArrayList<>();

  /** A new value: text, random bytes, text. */
  byte[] value() {
    byte[] canary = new byte[16];
    RANDOM.nextBytes(canary);
    random.add(canary);
    byte[] value = new byte[TEXT.length + canary.length + TEXT.length];
    System.arraycopy(TEXT, 0, value, 0, TEXT.length);
    System.arraycopy(canary, 0, value, TEXT.length, canary.length);
    System.arraycopy(TEXT, 0, value, TEXT.length + canary.length, TEXT.length);
    return value;
  }

  /** A new value of text. */
  String text() {
    String canary = UUID.randomUUID().toString();
    random.add(canary.getBytes(StandardCharsets.UTF_8));
    return "the application's own plaintext " + canary;
  }

  /** Searches all that the broker stores, and shows that the search finds what is there. */
  void assertNoneStored() throws IOException {
    byte[] control = new byte[16];
    RANDOM.nextBytes(control);
    try (KafkaProducer<byte[], byte[]> producer = Clients.plainProducer()) {
      Clients.send(producer, new ProducerRecord<>("control", control));
    }
    List<byte[]> patterns = new ArrayList<>(random);
    patterns.add(TEXT);
    patterns.add(control);
    assertThat(new SegmentScanner(patterns).scan(Cluster.broker().logDir()).hits())
        .as("only the control value, which is pattern %d", patterns.size() - 1)
        .extracting(SegmentScanner.Hit::pattern)
        .containsExactly(patterns.size() - 1);
  }
}
