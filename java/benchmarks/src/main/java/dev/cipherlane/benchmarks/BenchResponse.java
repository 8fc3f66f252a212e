// `make bench-transport PARTS=Response`: how long a record takes until it is acknowledged.
package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * 64 producers, each with a connection of its own, together send 32 MB of records of 1 KB a second,
 * at a steady pace, through one broker; the value of a row is the median of the runs' 99th
 * percentiles, from when a record was due to its acknowledgement.
 */
public final class BenchResponse {
  // After two, compilers still delay some runs threefold.
  private static final int WARM_UPS = Integer.getInteger("warmups", 6);
  private static final int CONNECTIONS = 64;
  private static final int SIZE = 1_024;
  private static final int PER_SECOND = 32_000_000 / SIZE;
  private static final int SECONDS = Integer.getInteger("seconds", 5);
  private static final int RECORDS = PER_SECOND * SECONDS;
  private static final String TOPIC = "transport-response";
  private static final String NAME = "produce-paced/" + SIZE + "B/" + CONNECTIONS + "conn";

  private BenchResponse() {}

  /**
   * Runs the benchmark.
   *
   * @param args none
   * @throws IOException if a process cannot be started or ends early
   */
  public static void main(String[] args) throws IOException {
    List<TransportRow> rows =
        TransportRow.chosen(
            TransportRow.PLAINTEXT, TransportRow.JDK_TLS, TransportRow.CIPHERLANE_TLS);
    Map<String, String> notes = Choice.notes();
    notes.put("records_per_second", String.valueOf(PER_SECOND));
    Report report = new Report("java-transport-response", "p99_us", Rounds.COUNT, notes);
    Path folder = Files.createTempDirectory("cipherlane-bench-");
    try (RowBrokers brokers =
        RowBrokers.shared(folder, rows, "2g", List.of("--topics", TOPIC + ":1"))) {
      report.add(NAME, measure(folder, rows, brokers));
    } finally {
      Settings.delete(folder);
    }
    report.write();
  }

  private static Map<String, List<Map<String, Double>>> measure(
      Path folder, List<TransportRow> rows, RowBrokers brokers) throws IOException {
    Path payload = Settings.payload(folder, SIZE);
    String run = "run " + TOPIC + " " + RECORDS + " " + PER_SECOND + " " + payload;
    try (var clients = new RowClients<>(rows, brokers::pids)) {
      for (TransportRow row : rows) {
        Map<String, String> settings = new TreeMap<>(brokers.client(row));
        settings.put("acks", "1");
        Settings.addChosen(settings);
        Path configuration = folder.resolve(row.label() + ".properties");
        Settings.write(configuration, settings);
        clients.of(row).tell("open pace " + CONNECTIONS + " " + configuration);
      }
      // They connect in their first run.
      int warmUps = Math.max(1, WARM_UPS);
      return Rounds.measure(NAME, rows, warmUps, row -> figures(clients.of(row), run));
    }
  }

  private static Map<String, Double> figures(ClientProcess client, String command)
      throws IOException {
    BenchKafka.Run run = client.run(command, RECORDS);
    Map<String, Double> figures = new LinkedHashMap<>(client.figures());
    figures.put("client_cpu_us", run.client());
    figures.put("broker_cpu_us", run.broker());
    figures.put("records_per_second", run.throughput());
    return figures;
  }
}
