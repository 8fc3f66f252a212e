// What the loads of producers have in common.
package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Makes producers and what they send. */
final class Producers {
  // Kafka's default is 32 MiB for each: too much where there are hundreds.
  private static final int BUFFERS = 128 << 20;

  private Producers() {}

  static Pool<KafkaProducer<byte[], byte[]>> open(int count, Properties configuration) {
    Properties own = new Properties();
    own.putAll(configuration);
    own.put("buffer.memory", String.valueOf(BUFFERS / count));
    return new Pool<>(
        count,
        () -> new KafkaProducer<>(own, new ByteArraySerializer(), new ByteArraySerializer()));
  }

  /** The lines of a file. */
  static List<byte[]> values(String file) throws IOException {
    return Files.readAllLines(Path.of(file)).stream()
        .map(line -> line.getBytes(StandardCharsets.US_ASCII))
        .toList();
  }
}
