// `make -C java bench-kafka`: what encrypting costs a producer, a consumer and their broker,
// against
// plaintext.
package dev.cipherlane.benchmarks;

import dev.cipherlane.testing.BrokerProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Runs Kafka's own {@code ProducerPerformance}, with a payload file, and {@code
 * ConsumerPerformance} through plaintext and encrypting clients in turn, and reports CPU
 * microseconds per record of client and broker, as the operating system counts them.
 *
 * <p>Each row has a Java machine of its own that lives for all runs of a kind, so that compilation
 * is over when it counts and one row's profile does not spoil the other's. Runs are interleaved;
 * the order changes with each round.
 */
public final class BenchKafka {
  private static final int ROUNDS = Integer.getInteger("rounds", 5);
  private static final int MIN_WARM_UPS = 3;
  private static final int MAX_WARM_UPS = 10;
  // Of a client's CPU time: when its compilers do less in a run, its code is what it will be.
  private static final double COMPILED = 0.05;
  private static final int PAYLOADS = 1_000;
  // Those of Kafka's scripts kafka-server-start and kafka-run-class.
  private static final List<String> BROKER_FLAGS =
      Stream.concat(Stream.of("-Xms1g", "-Xmx1g", "-XX:+UseG1GC"), Cpu.FLAGS.stream()).toList();

  private final Path folder;
  private final BrokerProcess broker;
  private final KeyServiceProcess keyService;
  private final Report report;

  private BenchKafka(Path folder, BrokerProcess broker, KeyServiceProcess keyService)
      throws IOException {
    this.report =
        new Report(
            "java-kafka",
            "cpu_us_per_record",
            ROUNDS,
            Map.of(
                "producer", System.getProperty("producer", ""),
                "gcm", System.getProperty("gcm", "corretto")));
    this.folder = folder;
    this.broker = broker;
    this.keyService = keyService;
  }

  /** What is compared; the baseline comes first. */
  enum Row {
    PLAINTEXT,
    ENCRYPTED;

    String label() {
      return name().toLowerCase(java.util.Locale.ROOT);
    }
  }

  /**
   * One run's figures: CPU microseconds per record of both processes without compiling, those of
   * the client's compilers, and records per second.
   */
  record Run(double client, double broker, double compiling, double throughput) {
    boolean compiled() {
      return compiling < COMPILED * client;
    }

    Map<String, Double> figures() {
      Map<String, Double> figures = new LinkedHashMap<>();
      figures.put(Report.VALUE, client + broker);
      figures.put("client", client);
      figures.put("broker", broker);
      figures.put("compiling", compiling);
      figures.put("records_per_second", throughput);
      return figures;
    }
  }

  /**
   * Runs the benchmark.
   *
   * @param args none
   * @throws IOException if a process cannot be started or ends early
   */
  public static void main(String[] args) throws IOException {
    Path folder = Files.createTempDirectory("cipherlane-bench-");
    List<String> options = new ArrayList<>(List.of("--topics", Case.topics()));
    options.addAll(ShortLog.options(128L << 20, 512L << 20));
    try (var keyService = KeyServiceProcess.start(folder);
        var broker = BrokerProcess.start(BROKER_FLAGS, options)) {
      new BenchKafka(folder, broker, keyService).run();
    } finally {
      Settings.delete(folder);
    }
  }

  private void run() throws IOException {
    for (Operation operation : Operation.values()) {
      measureAll(Case.chosen(each -> each.operation() == operation));
    }
    report.write();
  }

  /** With machines of their own: what a client did before has shaped its code. */
  private void measureAll(List<Case> cases) throws IOException {
    try (var plaintext = ClientProcess.start(broker.pid());
        var encrypted = ClientProcess.start(broker.pid())) {
      var clients = new EnumMap<>(Map.of(Row.PLAINTEXT, plaintext, Row.ENCRYPTED, encrypted));
      for (Case each : cases) {
        report.add(each.name(), measure(each, clients));
      }
    }
  }

  private Map<String, List<Map<String, Double>>> measure(Case each, Map<Row, ClientProcess> clients)
      throws IOException {
    Path payload = Settings.payload(folder, each.size(), PAYLOADS);
    var configurations = new EnumMap<Row, Path>(Row.class);
    var runs = new LinkedHashMap<String, List<Map<String, Double>>>();
    for (Row row : Row.values()) {
      configurations.put(row, settings(each.operation(), row));
      runs.put(row.label(), new ArrayList<>());
      if (each.operation() == Operation.CONSUME) {
        fill(each, row, clients.get(row), payload);
      }
    }
    warmUp(each, clients, configurations, payload);
    for (int round = 0; round < ROUNDS; round++) {
      for (Row row : order(round)) {
        Run run = run(each, row, clients, configurations, payload);
        progress(each, row, "run " + (round + 1), run);
        runs.get(row.label()).add(run.figures());
      }
    }
    return runs;
  }

  /** Until both clients are compiled, or as compiled as they get. */
  private static void warmUp(
      Case each, Map<Row, ClientProcess> clients, Map<Row, Path> configurations, Path payload)
      throws IOException {
    boolean compiled = false;
    for (int round = 0; round < MIN_WARM_UPS || (!compiled && round < MAX_WARM_UPS); round++) {
      compiled = true;
      for (Row row : order(round)) {
        Run run = run(each, row, clients, configurations, payload);
        progress(each, row, "warm-up", run);
        compiled &= run.compiled();
      }
    }
  }

  private static Run run(
      Case each,
      Row row,
      Map<Row, ClientProcess> clients,
      Map<Row, Path> configurations,
      Path payload)
      throws IOException {
    String command = each.command(row, configurations.get(row), payload);
    return clients.get(row).run(command, each.records());
  }

  private void fill(Case each, Row row, ClientProcess client, Path payload) throws IOException {
    Path producer = settings(Operation.PRODUCE_BATCH128K, row);
    client.run(each.fillCommand(row, producer, payload), each.records());
  }

  private Path settings(Operation operation, Row row) throws IOException {
    return Settings.of(folder, broker, keyService, operation, row);
  }

  /** Another row first each time. */
  static List<Row> order(int round) {
    return round % 2 == 0
        ? List.of(Row.PLAINTEXT, Row.ENCRYPTED)
        : List.of(Row.ENCRYPTED, Row.PLAINTEXT);
  }

  private static void progress(Case each, Row row, String what, Run run) {
    System.err.printf(
        "%-22s %-9s %-7s  client %6.2f  broker %6.2f  (compiling %5.2f)  CPU us per record"
            + "  %9.0f records/s%n",
        each.name(),
        row.label(),
        what,
        run.client(),
        run.broker(),
        run.compiling(),
        run.throughput());
  }
}
