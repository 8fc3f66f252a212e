// Runs in the producer's Java machine: Kafka's ProducerPerformance, once for each line on standard
// input.
package dev.cipherlane.benchmarks;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.tools.ProducerPerformance;

/** Lines are {@code TOPIC RECORDS PAYLOAD_FILE}; after each run it prints {@link #DONE}. */
final class ClientMain {
  static final String DONE = "-- done";
  private static final String UNTHROTTLED = "-1";

  private ClientMain() {}

  public static void main(String[] args) throws Exception {
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] words = line.split(" ", 3);
      ProducerPerformance.main(
          new String[] {
            "--topic", words[0],
            "--num-records", words[1],
            "--payload-file", words[2],
            "--throughput", UNTHROTTLED,
            "--producer.config", args[0]
          });
      System.out.println(DONE);
    }
  }
}
