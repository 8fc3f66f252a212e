// `make bench-transport PARTS=Handshakes`: what the handshake of a connection costs both sides.
package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Connects to a broker, shakes hands with certificates on both sides, has one ApiVersions request
 * answered and closes; four threads do so at the same time. Once with a full handshake each time,
 * once with the session of an earlier connection where the engines have that. The broker has one
 * network thread: each has sessions of its own.
 */
public final class BenchHandshakes {
  private static final int WARM_UPS = Integer.getInteger("warmups", 4);
  private static final int AT_A_TIME = 4;
  private static final int COUNT = Integer.getInteger("handshakes", 1_000);

  private BenchHandshakes() {}

  /**
   * Runs the benchmark.
   *
   * @param args none
   * @throws IOException if a process cannot be started or ends early
   */
  public static void main(String[] args) throws IOException {
    List<TransportRow> rows =
        TransportRow.chosen(
            TransportRow.JDK_TLS,
            TransportRow.NETTY,
            TransportRow.CIPHERLANE_TLS,
            TransportRow.CIPHERLANE_JDK);
    Report report =
        new Report(
            "java-transport-handshakes", "cpu_us_per_handshake", Rounds.COUNT, Choice.notes());
    Path folder = Files.createTempDirectory("cipherlane-bench-");
    try (RowBrokers brokers =
        RowBrokers.shared(folder, rows, "2g", List.of("--set", "num.network.threads=1"))) {
      for (boolean resuming : new boolean[] {false, true}) {
        String name = resuming ? "handshake-resumed" : "handshake-full";
        report.add(name, measure(name, folder, rows, brokers, resuming));
      }
    } finally {
      Settings.delete(folder);
    }
    report.write();
  }

  private static Map<String, List<Map<String, Double>>> measure(
      String name, Path folder, List<TransportRow> rows, RowBrokers brokers, boolean resuming)
      throws IOException {
    try (var clients = new RowClients<>(rows, brokers::pids)) {
      for (TransportRow row : rows) {
        Map<String, String> settings = brokers.client(row);
        HandshakeEngineFactory.wrap(settings, resuming);
        Path configuration = folder.resolve(row.label() + ".properties");
        Settings.write(configuration, settings);
        clients.of(row).tell("open handshake " + AT_A_TIME + " " + configuration);
      }
      return Rounds.measure(name, rows, WARM_UPS, row -> figures(clients.of(row)));
    }
  }

  private static Map<String, Double> figures(ClientProcess client) throws IOException {
    BenchKafka.Run run = client.run("run " + COUNT, COUNT);
    Map<String, Double> figures = new LinkedHashMap<>();
    figures.put(Report.VALUE, run.client() + run.broker());
    figures.put("client", run.client());
    figures.put("broker", run.broker());
    figures.put("handshakes_per_second", run.throughput());
    figures.put(HandshakeLoad.RESUMED, client.figures().get(HandshakeLoad.RESUMED));
    return figures;
  }
}
