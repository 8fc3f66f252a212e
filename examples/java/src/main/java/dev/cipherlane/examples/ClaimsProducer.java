// A plain Kafka producer: it knows nothing of encryption. Whether values are encrypted is decided
// by
// `interceptor.classes` in its properties file and by the key service's policy.
package dev.cipherlane.examples;

import java.io.FileReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends each line of a file as one record; the key is the line's number. */
public final class ClaimsProducer {
  private static final int PROGRESS_EVERY = 1_000;
  private static final int PACE_EVERY = 50;
  private static final long MILLIS_PER_SECOND = 1_000;

  private ClaimsProducer() {}

  /**
   * Runs the producer.
   *
   * @param args properties file, topic, file with one JSON object a line, records per second
   * @throws Exception what Kafka or the file system reports; nothing is swallowed
   */
  public static void main(String[] args) throws Exception {
    if (args.length != 4) {
      System.err.println("usage: ClaimsProducer PROPERTIES TOPIC FILE RECORDS_PER_SECOND");
      System.exit(2);
    }
    List<String> lines = Files.readAllLines(Path.of(args[2]));
    try (var producer = producer(args[0])) {
      sendAll(producer, args[1], lines, Integer.parseInt(args[3]));
    }
    System.out.println("acknowledged " + lines.size());
  }

  private static KafkaProducer<byte[], byte[]> producer(String file) throws IOException {
    Properties properties = new Properties();
    try (var reader = new FileReader(file, StandardCharsets.UTF_8)) {
      properties.load(reader);
    }
    return new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
  }

  private static void sendAll(
      KafkaProducer<byte[], byte[]> producer, String topic, List<String> lines, int rate)
      throws InterruptedException, ExecutionException {
    Future<RecordMetadata> last = null;
    // The pace counts from when the first record can go, not from when the cluster is looked up.
    producer.partitionsFor(topic);
    long start = System.currentTimeMillis();
    for (int i = 0; i < lines.size(); i++) {
      last = producer.send(new ProducerRecord<>(topic, bytes("" + i), bytes(lines.get(i))));
      if ((i + 1) % PROGRESS_EVERY == 0) {
        last.get();
        System.out.println("sent " + (i + 1));
      }
      if ((i + 1) % PACE_EVERY == 0) {
        sleepUntil(start + (i + 1) * MILLIS_PER_SECOND / rate);
      }
    }
    if (last != null) {
      last.get();
    }
  }

  private static void sleepUntil(long millis) throws InterruptedException {
    Thread.sleep(Math.max(0, millis - System.currentTimeMillis()));
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
