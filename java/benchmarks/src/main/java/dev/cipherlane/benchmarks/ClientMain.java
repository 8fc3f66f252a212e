// Runs in a client's Java machine: what the lines on standard input say, one after the other.
package dev.cipherlane.benchmarks;

import com.google.gson.Gson;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.tools.ConsumerPerformance;
import org.apache.kafka.tools.ProducerPerformance;

/**
 * Lines are
 *
 * <ul>
 *   <li>{@code produce|consume TOPIC RECORDS CONFIGURATION PAYLOAD_FILE}: Kafka's
 *       ProducerPerformance or ConsumerPerformance, once
 *   <li>{@code open KIND CLIENTS CONFIGURATION}: opens a {@link Load} in place of the one before
 *   <li>{@code run ARGUMENT...}: runs it
 * </ul>
 *
 * After each it prints {@link #DONE} and the figures of the run as JSON.
 */
final class ClientMain {
  static final String DONE = "-- done";
  private static final String UNTHROTTLED = "-1";

  private ClientMain() {}

  public static void main(String[] args) throws Exception {
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    Load load = null;
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      List<String> words = List.of(line.split(" "));
      Map<String, Double> figures = Map.of();
      switch (words.get(0)) {
        case "produce" -> produce(words.get(1), words.get(2), words.get(3), words.get(4));
        case "consume" -> consume(words.get(1), words.get(2), words.get(3));
        case "open" -> load = replace(load, words);
        default -> figures = load.run(words.subList(1, words.size()));
      }
      System.out.println(DONE + new Gson().toJson(figures));
    }
  }

  private static Load replace(Load before, List<String> words) throws Exception {
    if (before != null) {
      before.close();
    }
    return Load.open(words.get(1), Integer.parseInt(words.get(2)), properties(words.get(3)));
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
          properties(configuration).getProperty("bootstrap.servers"),
          "--hide-header",
          "--command-config",
          configuration
        });
  }

  private static Properties properties(String configuration) throws IOException {
    Properties properties = new Properties();
    try (var reader = Files.newBufferedReader(Path.of(configuration))) {
      properties.load(reader);
    }
    return properties;
  }
}
