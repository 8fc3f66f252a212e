// `make bench-transport PARTS=Transport`: what TLS costs clients and brokers by record.
package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Producers and consumers through a broker's listeners, one for each row, over one or many
 * connections; and producers that wait for all of three brokers ({@code acks=all}), which copy over
 * the row's TLS too. Reports CPU microseconds per record of client and brokers; and the taxes: what
 * each TLS costs over plaintext.
 *
 * <p>One connection is Kafka's own performance tool, which connects anew for each run; many are
 * clients of one Java machine that stay connected, so that handshakes are not part of the figure.
 */
public final class BenchTransport {
  // The Java machines of clients are new for each number of connections and operation.
  private static final int WARM_UPS = Integer.getInteger("warmups", 4);
  private static final int WARM_UPS_OF_NEXT_SIZE = Math.min(1, WARM_UPS);
  private static final String MAX_REQUEST = "2000000";

  private final Path folder;
  private final List<TransportRow> chosen;
  private final Report report =
      new Report("java-transport", "cpu_us_per_record", Rounds.COUNT, Choice.notes());

  private BenchTransport(Path folder, List<TransportRow> chosen) throws IOException {
    this.folder = folder;
    this.chosen = chosen;
  }

  /**
   * Runs the benchmark.
   *
   * @param args none
   * @throws IOException if a process cannot be started or ends early
   */
  public static void main(String[] args) throws IOException {
    List<TransportRow> rows =
        TransportRow.chosen(
            TransportRow.PLAINTEXT,
            TransportRow.JDK_TLS,
            TransportRow.NETTY,
            TransportRow.WILDFLY,
            TransportRow.CIPHERLANE_TLS);
    Path folder = Files.createTempDirectory("cipherlane-bench-");
    try {
      new BenchTransport(folder, rows).run();
    } finally {
      Settings.delete(folder);
    }
  }

  private void run() throws IOException {
    for (String acks : TransportCase.chosenAcks()) {
      for (int connections : TransportCase.chosenConnections(acks)) {
        List<List<TransportCase>> groups =
            TransportCase.chosenOperations(acks).stream()
                .map(operation -> TransportCase.chosen(operation, connections, acks))
                .filter(cases -> !cases.isEmpty())
                .toList();
        if (!groups.isEmpty()) {
          measureAll(groups);
        }
      }
    }
    report.write();
  }

  /** With brokers of their own. */
  private void measureAll(List<List<TransportCase>> groups) throws IOException {
    List<String> topics =
        List.of(
            "--topics",
            groups.stream()
                .flatMap(List::stream)
                .map(each -> each.topic() + ":1")
                .collect(Collectors.joining(",")));
    TransportCase first = groups.get(0).get(0);
    List<TransportRow> rows = rows(first);
    try (RowBrokers brokers =
        first.onThree()
            ? RowBrokers.clusters(folder, rows, topics)
            : RowBrokers.shared(folder, rows, "2g", topics)) {
      for (List<TransportCase> cases : groups) {
        measureGroup(cases, rows, brokers);
      }
    }
  }

  /**
   * WildFly's engine is measured over one connection, unless it is asked for: with 64, runs take
   * half a minute as if a request had been given up and sent again, for a reason not known.
   */
  private List<TransportRow> rows(TransportCase first) {
    boolean all = (first.connections() == 1 && !first.onThree()) || Choice.made("row");
    return chosen.stream().filter(row -> all || row != TransportRow.WILDFLY).toList();
  }

  private void measureGroup(List<TransportCase> cases, List<TransportRow> rows, RowBrokers brokers)
      throws IOException {
    try (var clients = new RowClients<>(rows, brokers::pids)) {
      for (TransportRow row : rows) {
        for (TransportCase each : cases) {
          configure(each, row, brokers);
        }
        open(cases.get(0), clients.of(row), file(cases.get(0), row));
      }
      for (TransportCase each : cases) {
        int warmUps = each.equals(cases.get(0)) ? WARM_UPS : WARM_UPS_OF_NEXT_SIZE;
        add(each.name(), measure(each, rows, clients, warmUps));
      }
    }
  }

  private static void open(TransportCase each, ClientProcess client, Path configuration)
      throws IOException {
    if (each.connections() > 1) {
      System.err.println("opening " + each.connections() + ": " + configuration.getFileName());
      client.tell("open " + each.operation() + " " + each.connections() + " " + configuration);
    }
  }

  private Map<String, List<Map<String, Double>>> measure(
      TransportCase each, List<TransportRow> rows, RowClients<TransportRow> clients, int warmUps)
      throws IOException {
    Path payload = Settings.payload(folder, each.size());
    if (each.consumes()) {
      clients.of(rows.get(0)).tell(fillCommand(each, payload));
    }
    // Those that stay connected connect in their first run.
    int first = each.connections() > 1 ? Math.max(1, warmUps) : warmUps;
    return Rounds.measure(
        each.name(),
        rows,
        first,
        row -> clients.of(row).run(command(each, row, payload), each.records()).figures());
  }

  private String command(TransportCase each, TransportRow row, Path payload) {
    String topic = each.topic();
    String records = String.valueOf(each.records());
    return each.connections() > 1
        ? String.join(" ", "run", topic, records, payload.toString())
        : String.join(
            " ", each.operation(), topic, records, file(each, row).toString(), payload.toString());
  }

  /** What is there to be consumed is produced without TLS. */
  private String fillCommand(TransportCase each, Path payload) {
    return String.join(
        " ",
        "produce",
        each.topic(),
        String.valueOf(each.stored()),
        file(each, TransportRow.PLAINTEXT).toString(),
        payload.toString());
  }

  private Path file(TransportCase each, TransportRow row) {
    String name = String.join("-", each.operation(), String.valueOf(each.size()), row.label());
    return folder.resolve(name + ".properties");
  }

  private void configure(TransportCase each, TransportRow row, RowBrokers brokers)
      throws IOException {
    Map<String, String> settings = new TreeMap<>(brokers.client(row));
    if (!each.consumes()) {
      settings.put("acks", each.acks());
      settings.put("max.request.size", MAX_REQUEST);
      each.batchSize().ifPresent(bytes -> settings.put("batch.size", String.valueOf(bytes)));
      Settings.addChosen(settings);
    }
    Settings.write(file(each, row), settings);
  }

  private void add(String name, Map<String, List<Map<String, Double>>> runs) {
    report.add(name, runs);
    Map<String, List<Map<String, Double>>> taxes = new LinkedHashMap<>();
    for (TransportRow row : List.of(TransportRow.JDK_TLS, TransportRow.CIPHERLANE_TLS)) {
      if (runs.containsKey(row.label())) {
        String label = row.label().replace("tls", "tax");
        taxes.put(label, tax(runs.get(row.label()), runs.get(TransportRow.PLAINTEXT.label())));
      }
    }
    if (!taxes.isEmpty()) {
      report.add(name, taxes);
    }
  }

  /** Run by run. */
  private static List<Map<String, Double>> tax(
      List<Map<String, Double>> tls, List<Map<String, Double>> plaintext) {
    return IntStream.range(0, tls.size())
        .mapToObj(
            i ->
                Map.of(
                    Report.VALUE,
                    tls.get(i).get(Report.VALUE) - plaintext.get(i).get(Report.VALUE)))
        .toList();
  }
}
