// `make bench-transport PARTS=IdleMemory`: what a connection takes of a broker's memory.
package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Growth of a broker's heap and of its memory outside the heap, after collections, by connections
 * that each have made one small request and stay. Each run has a new broker: memory that was freed
 * once is not asked of the system again, and would not be seen.
 */
public final class BenchIdleMemory {
  private static final int CONNECTIONS = Integer.getInteger("idle", 2_000);
  private static final String NAME = "idle/" + CONNECTIONS + "conn";
  // One at a time, so that they load classes and compile code but leave no memory to be used again.
  private static final int WARM_UPS = CONNECTIONS / 4;
  private static final double KIB = 1_024;

  private BenchIdleMemory() {}

  /**
   * Runs the benchmark.
   *
   * @param args none
   * @throws IOException if a process cannot be started or ends early
   */
  public static void main(String[] args) throws IOException {
    List<TransportRow> rows =
        TransportRow.chosen(
            TransportRow.JDK_TLS, TransportRow.CIPHERLANE_TLS, TransportRow.CIPHERLANE_JDK);
    Report report =
        new Report(
            "java-transport-idle-memory", "kib_per_connection", Rounds.COUNT, Choice.notes());
    Path folder = Files.createTempDirectory("cipherlane-bench-");
    try {
      report.add(NAME, Rounds.measure(NAME, rows, 0, row -> measure(folder, row)));
    } finally {
      Settings.delete(folder);
    }
    report.write();
  }

  private static Map<String, Double> measure(Path folder, TransportRow row) throws IOException {
    try (RowBrokers brokers = RowBrokers.shared(folder, List.of(row), "1g", List.of());
        ClientProcess client = ClientProcess.start(brokers.pids(row), "1g")) {
      long broker = brokers.pids(row).get(0);
      Path configuration = folder.resolve(row.label() + ".properties");
      Settings.write(configuration, brokers.client(row));
      client.tell("open handshake 1 " + configuration);
      client.tell("run " + WARM_UPS);
      client.tell("open idle 1 " + configuration);
      Memory before = Memory.of(broker);
      client.tell("run " + CONNECTIONS);
      return figures(before, Memory.of(broker));
    }
  }

  private static Map<String, Double> figures(Memory before, Memory after) {
    double heap = (after.heap() - before.heap()) / KIB / CONNECTIONS;
    double outside = (after.resident() - before.resident()) / KIB / CONNECTIONS;
    Map<String, Double> figures = new LinkedHashMap<>();
    figures.put(Report.VALUE, heap + outside);
    figures.put("heap", heap);
    figures.put("native", outside);
    return figures;
  }
}
