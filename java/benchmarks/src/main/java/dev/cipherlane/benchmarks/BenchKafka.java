// `make -C java bench-kafka`: what encrypting costs a producer and its broker, against plaintext.
package dev.cipherlane.benchmarks;

import dev.cipherlane.testing.BrokerProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Runs Kafka's own {@code ProducerPerformance} with a payload file through plaintext and encrypting
 * producers in turn, and reports CPU microseconds per record of client and broker, as the operating
 * system counts them.
 *
 * <p>Each row has a Java machine of its own that lives for all runs, so that compilation is over
 * when it counts and one row's profile does not spoil the other's. Runs are interleaved; the order
 * changes with each round.
 */
public final class BenchKafka {
  private static final int ROUNDS = Integer.getInteger("rounds", 5);
  private static final int WARM_UPS = 2;
  private static final int PAYLOADS = 1_000;
  private static final int ONE_SIZE = Integer.getInteger("size", 0);
  private static final List<Case> CASES =
      Stream.of(new Case(128, 2_000_000), new Case(1_024, 500_000), new Case(8_192, 60_000))
          .filter(each -> ONE_SIZE == 0 || each.size() == ONE_SIZE)
          .toList();
  private static final List<String> BROKER_FLAGS = List.of("-Xmx1g", "-XX:+UseSerialGC");
  private static final String RETENTION_BYTES = "log.retention.bytes=536870912";
  private static final String SEGMENT_BYTES = "log.segment.bytes=134217728";

  private BenchKafka() {}

  /** One record size, and how many records of it a run sends. */
  record Case(int size, int records) {
    String name() {
      return "produce/" + size + "B";
    }

    String topic() {
      return "bench-" + size;
    }
  }

  /** What is compared; the baseline comes first. */
  enum Row {
    PLAINTEXT,
    ENCRYPTED;

    String label() {
      return name().toLowerCase(java.util.Locale.ROOT);
    }
  }

  /** One run's figures: CPU microseconds per record of both processes, and records per second. */
  record Run(double client, double broker, double throughput) {
    double total() {
      return client + broker;
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
    String topics = String.join(",", CASES.stream().map(c -> c.topic() + ":1").toList());
    List<String> options =
        List.of("--topics", topics, "--set", RETENTION_BYTES, "--set", SEGMENT_BYTES);
    try (var keyService = KeyServiceProcess.start(folder);
        var broker = BrokerProcess.start(BROKER_FLAGS, options);
        var plaintext = ClientProcess.start(Settings.plaintext(folder, broker));
        var encrypted = ClientProcess.start(Settings.encrypted(folder, broker, keyService))) {
      var clients = new EnumMap<Row, ClientProcess>(Row.class);
      clients.put(Row.PLAINTEXT, plaintext);
      clients.put(Row.ENCRYPTED, encrypted);
      Report report = new Report("java-kafka", ROUNDS);
      for (Case each : CASES) {
        report.add(each.name(), measure(each, clients, broker.pid(), folder));
      }
      report.write();
    } finally {
      Settings.delete(folder);
    }
  }

  private static Map<Row, List<Run>> measure(
      Case each, Map<Row, ClientProcess> clients, long broker, Path folder) throws IOException {
    Path payload = Settings.payload(folder, each.size(), PAYLOADS);
    var runs = new EnumMap<Row, List<Run>>(Row.class);
    for (Row row : Row.values()) {
      runs.put(row, new ArrayList<>());
    }
    for (int round = -WARM_UPS; round < ROUNDS; round++) {
      for (Row row : order(round)) {
        Run run = clients.get(row).run(each, payload, broker);
        progress(each, row, round, run);
        if (round >= 0) {
          runs.get(row).add(run);
        }
      }
    }
    return runs;
  }

  private static List<Row> order(int round) {
    return round % 2 == 0
        ? List.of(Row.PLAINTEXT, Row.ENCRYPTED)
        : List.of(Row.ENCRYPTED, Row.PLAINTEXT);
  }

  private static void progress(Case each, Row row, int round, Run run) {
    System.err.printf(
        "%-14s %-9s %s  client %6.2f  broker %6.2f  CPU us per record  %9.0f records/s%n",
        each.name(),
        row.label(),
        round < 0 ? "warm-up" : "run " + (round + 1),
        run.client(),
        run.broker(),
        run.throughput());
  }
}
