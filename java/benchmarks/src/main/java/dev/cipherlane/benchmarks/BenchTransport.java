// `make -C java bench-transport`: what TLS costs a producer, a consumer and their broker.
package dev.cipherlane.benchmarks;

import dev.cipherlane.testing.BrokerProcess;
import dev.cipherlane.transport.engine.KeyFiles;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Runs Kafka's own performance tools through one broker's listeners, one for each row, and reports
 * CPU microseconds per record of client and broker; and the taxes: what each TLS costs over
 * plaintext. One connection, {@code acks=1}; runs are interleaved and change their order with each
 * round.
 */
public final class BenchTransport {
  private static final int ROUNDS = Integer.getInteger("rounds", 5);
  private static final int WARM_UPS = Integer.getInteger("warmups", 3);
  private static final String OPERATION = System.getProperty("operation", "");
  private static final int SIZE = Integer.getInteger("size", 0);
  private static final int PAYLOADS = 200;
  private static final List<String> BROKER_FLAGS = List.of("-Xms1g", "-Xmx1g", "-XX:+UseG1GC");

  /** Records of a run by their size in bytes. */
  private static final Map<Integer, Integer> RECORDS =
      new TreeMap<>(
          Map.of(128, 1_500_000, 512, 600_000, 1_024, 400_000, 10_240, 50_000, 512_000, 1_000));

  private final Path folder;
  private final Path keys;
  private final BrokerProcess broker;
  private final Report report;

  private BenchTransport(Path folder, Path keys, BrokerProcess broker) throws IOException {
    this.folder = folder;
    this.keys = keys;
    this.broker = broker;
    this.report =
        new Report(
            "java-transport",
            "cpu_us_per_record",
            ROUNDS,
            Map.of("engine", System.getProperty("engine", "auto"), "acks", "1"));
  }

  /**
   * Runs the benchmark.
   *
   * @param args none
   * @throws IOException if a process cannot be started or ends early
   */
  public static void main(String[] args) throws IOException {
    Path folder = Files.createTempDirectory("cipherlane-bench-");
    KeyFiles keys = KeyFiles.write(folder);
    List<String> options = new ArrayList<>(List.of("--topics", topics()));
    options.addAll(List.of("--set", "log.retention.bytes=536870912"));
    options.addAll(List.of("--set", "log.segment.bytes=134217728"));
    TransportRow.chosen().forEach(row -> options.addAll(row.listener(keys.server())));
    try (var broker = BrokerProcess.start(engines(), BROKER_FLAGS, options)) {
      new BenchTransport(folder, keys.client(), broker).run();
    } finally {
      Settings.delete(folder);
    }
  }

  /** What the broker needs besides its own. */
  private static List<Path> engines() {
    return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
        .filter(jar -> jar.matches(".*(cipherlane-(core|transport)|netty-|bcp|gson).*"))
        .map(Path::of)
        .toList();
  }

  private static Stream<Integer> sizes() {
    return RECORDS.keySet().stream().filter(size -> SIZE == 0 || SIZE == size);
  }

  private static String topics() {
    return sizes()
        .flatMap(size -> Stream.of("produce", "consume").map(verb -> topic(verb, size) + ":1"))
        .collect(Collectors.joining(","));
  }

  private static String topic(String verb, int size) {
    return "transport-" + verb + "-" + size;
  }

  private void run() throws IOException {
    for (String verb : List.of("produce", "consume")) {
      if (OPERATION.isEmpty() || OPERATION.equals(verb)) {
        measureAll(verb);
      }
    }
    report.write();
  }

  /** With Java machines of their own: what a client did before has shaped its code. */
  private void measureAll(String verb) throws IOException {
    Map<TransportRow, ClientProcess> clients = new EnumMap<>(TransportRow.class);
    try {
      for (TransportRow row : TransportRow.chosen()) {
        clients.put(row, ClientProcess.start(broker.pid()));
      }
      for (int size : sizes().toList()) {
        add(verb + "/" + size + "B/1conn", measure(verb, size, clients));
      }
    } finally {
      for (ClientProcess client : clients.values()) {
        client.close();
      }
    }
  }

  private Map<String, List<Map<String, Double>>> measure(
      String verb, int size, Map<TransportRow, ClientProcess> clients) throws IOException {
    Path payload = Settings.payload(folder, size, PAYLOADS);
    int records = RECORDS.get(size);
    if (verb.equals("consume")) {
      String fill = command("produce", topic(verb, size), TransportRow.PLAINTEXT, records, payload);
      clients.get(TransportRow.PLAINTEXT).run(fill, records);
    }
    Map<String, List<Map<String, Double>>> runs = new LinkedHashMap<>();
    clients.keySet().forEach(row -> runs.put(row.label(), new ArrayList<>()));
    List<TransportRow> order = new ArrayList<>(clients.keySet());
    for (int round = -WARM_UPS; round < ROUNDS; round++) {
      Collections.rotate(order, 1);
      for (TransportRow row : order) {
        String command = command(verb, topic(verb, size), row, records, payload);
        BenchKafka.Run run = clients.get(row).run(command, records);
        progress(verb, size, row, round, run);
        if (round >= 0) {
          runs.get(row.label()).add(run.figures());
        }
      }
    }
    return runs;
  }

  private String command(String verb, String topic, TransportRow row, int records, Path payload)
      throws IOException {
    Map<String, String> settings = row.client(keys);
    String bootstrap =
        row == TransportRow.PLAINTEXT ? broker.bootstrap() : broker.bootstrap(row.name());
    settings.put("bootstrap.servers", bootstrap);
    if (verb.equals("produce")) {
      settings.put("acks", "1");
      settings.put("max.request.size", "2000000");
    }
    Path file = Settings.write(folder.resolve(verb + "-" + row.label() + ".properties"), settings);
    return String.join(
        " ", verb, topic, String.valueOf(records), file.toString(), payload.toString());
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

  private static void progress(
      String verb, int size, TransportRow row, int round, BenchKafka.Run run) {
    System.err.printf(
        "%-8s %7d B  %-14s %s  client %6.2f  broker %6.2f  CPU us per record  %9.0f records/s%n",
        verb,
        size,
        row.label(),
        round < 0 ? "warm-up" : "run " + (round + 1),
        run.client(),
        run.broker(),
        run.throughput());
  }
}
