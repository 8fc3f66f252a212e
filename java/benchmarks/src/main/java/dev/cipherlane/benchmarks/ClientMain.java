// Runs in a client's Java machine: Kafka's ProducerPerformance or ConsumerPerformance, once for
// each
// line on standard input.
package dev.cipherlane.benchmarks;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;
import org.apache.kafka.tools.ConsumerPerformance;
import org.apache.kafka.tools.ProducerPerformance;

/**
 * Lines are {@code produce|consume TOPIC RECORDS CONFIGURATION PAYLOAD_FILE}; after each run it
 * prints {@link #DONE}.
 */
final class ClientMain {
  static final String DONE = "-- done";
  private static final String UNTHROTTLED = "-1";

  private ClientMain() {}

  public static void main(String[] args) throws Exception {
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words = line.split(" ", 5);
      if (words[0].equals("produce")) {
        produce(words[1], words[2], words[3], words[4]);
      } else {
        consume(words[1], words[2], words[3]);
      }
      System.out.println(DONE);
    }
  }

  private static void produce(String topic, String records, String configuration, String payload)
      throws Exception {
    ProducerPerformance.main(
        new String[] {
          "--topic", topic,
          "--num-records", records,
          "--payload-file", payload,
          "--throughput", UNTHROTTLED,
          "--producer.config", configuration
        });
  }

  /** Its groups have random names, so each run reads from the beginning. */
  private static void consume(String topic, String records, String configuration)
      throws IOException {
    ConsumerPerformance.main(
        new String[] {
          "--topic",
          topic,
          "--num-records",
          records,
          "--bootstrap-server",
          bootstrap(configuration),
          "--hide-header",
          "--command-config",
          configuration
        });
  }

  private static String bootstrap(String configuration) throws IOException {
    Properties properties = new Properties();
    try (var reader = Files.newBufferedReader(Path.of(configuration))) {
      properties.load(reader);
    }
    return properties.getProperty("bootstrap.servers");
  }
}
