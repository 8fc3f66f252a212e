// `make bench-transport PARTS=EncryptedTls`: what encrypted values and TLS cost together.
package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Kafka's own performance tools with records of 1 KB through plaintext and encrypting clients, each
 * with and without TLS. The figure {@code extra} of a row is its tax; that of the last row is both
 * taxes together.
 */
public final class BenchEncryptedTls {
  private static final int WARM_UPS = Integer.getInteger("warmups", 4);
  private static final List<TransportCase> CASES =
      List.of(
          new TransportCase("produce", 1_024, 1, "1"), new TransportCase("consume", 1_024, 1, "1"));

  private final Path folder;
  private final RowBrokers brokers;
  private final KeyServiceProcess keyService;

  private BenchEncryptedTls(Path folder, RowBrokers brokers, KeyServiceProcess keyService) {
    this.folder = folder;
    this.brokers = brokers;
    this.keyService = keyService;
  }

  /** The baseline comes first, and both together last. */
  private enum Row implements Labelled {
    PLAINTEXT("plaintext", false, TransportRow.PLAINTEXT),
    ENCRYPTED("encrypted", true, TransportRow.PLAINTEXT),
    TLS("cipherlane-tls", false, TransportRow.CIPHERLANE_TLS),
    BOTH("encrypted+tls", true, TransportRow.CIPHERLANE_TLS);

    private final String label;
    private final boolean encrypts;
    private final TransportRow transport;

    Row(String label, boolean encrypts, TransportRow transport) {
      this.label = label;
      this.encrypts = encrypts;
      this.transport = transport;
    }

    @Override
    public String label() {
      return label;
    }
  }

  /**
   * Runs the benchmark.
   *
   * @param args none
   * @throws IOException if a process cannot be started or ends early
   */
  public static void main(String[] args) throws IOException {
    Report report = new Report("java-encrypted-tls", "cpu_us_per_record", Rounds.COUNT, Map.of());
    Path folder = Files.createTempDirectory("cipherlane-bench-");
    List<TransportRow> listeners = List.of(TransportRow.PLAINTEXT, TransportRow.CIPHERLANE_TLS);
    try (var keyService = KeyServiceProcess.start(folder);
        var brokers = RowBrokers.shared(folder, listeners, "2g", List.of("--topics", topics()))) {
      var benchmark = new BenchEncryptedTls(folder, brokers, keyService);
      for (TransportCase each : CASES) {
        report.add(each.name(), benchmark.measure(each));
      }
    } finally {
      Settings.delete(folder);
    }
    report.write();
  }

  private static String topics() {
    return CASES.stream()
        .flatMap(each -> Stream.of(topic(each, true), topic(each, false)))
        .map(topic -> topic + ":1")
        .collect(Collectors.joining(","));
  }

  /** The policy of the key service encrypts what begins with {@code bench}. */
  private static String topic(TransportCase each, boolean encrypted) {
    return (encrypted ? "bench-" : "plain-") + each.operation();
  }

  private Map<String, List<Map<String, Double>>> measure(TransportCase each) throws IOException {
    List<Row> rows = List.of(Row.values());
    Map<Row, String> commands = new EnumMap<>(Row.class);
    try (var clients = new RowClients<>(rows, row -> brokers.pids(row.transport))) {
      for (Row row : rows) {
        commands.put(row, command(each, each.operation(), row));
        // Both that have TLS read what the others have written.
        if (each.consumes() && row.transport == TransportRow.PLAINTEXT) {
          clients.of(row).tell(command(each, "produce", row));
        }
      }
      return Rounds.measure(
          each.name(),
          rows,
          WARM_UPS,
          row -> clients.of(row).run(commands.get(row), each.records()).figures());
    }
  }

  private String command(TransportCase each, String verb, Row row) throws IOException {
    boolean produces = verb.equals("produce");
    Map<String, String> settings = new TreeMap<>(brokers.client(row.transport));
    if (produces) {
      settings.put("acks", "1");
    }
    if (row.encrypts) {
      settings.putAll(Settings.encrypting(keyService, !produces));
    }
    return String.join(
        " ",
        verb,
        topic(each, row.encrypts),
        String.valueOf(each.records()),
        Settings.write(folder.resolve(verb + "-" + row.name()), settings).toString(),
        Settings.payload(folder, each.size()).toString());
  }
}
