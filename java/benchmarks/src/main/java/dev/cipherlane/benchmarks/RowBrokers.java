// The brokers of a benchmark of the transport, with a listener for each row.
package dev.cipherlane.benchmarks;

import dev.cipherlane.testing.BrokerProcess;
import dev.cipherlane.transport.engine.KeyFiles;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;

/** One broker that all rows share, or a cluster for each. Not thread-safe. */
final class RowBrokers implements AutoCloseable {
  private static final long SEGMENT = 64L << 20;

  private final Map<TransportRow, BrokerProcess> brokers = new EnumMap<>(TransportRow.class);
  private final Map<String, KeyFiles> keys = new HashMap<>();

  private RowBrokers(Path folder, List<TransportRow> rows) throws IOException {
    for (TransportRow row : rows) {
      String algorithm = row.keyAlgorithm();
      if (!keys.containsKey(algorithm)) {
        Path own = Files.createDirectories(folder.resolve("keys-" + algorithm));
        keys.put(algorithm, KeyFiles.write(own, algorithm));
      }
    }
  }

  /**
   * Starts one broker for all rows.
   *
   * @param heap of its Java machine, for example 2g
   * @param more options of the broker
   */
  static RowBrokers shared(Path folder, List<TransportRow> rows, String heap, List<String> more)
      throws IOException {
    RowBrokers all = new RowBrokers(folder, rows);
    List<String> options = new ArrayList<>(more);
    options.addAll(ShortLog.options(SEGMENT, 512L << 20));
    rows.forEach(row -> options.addAll(row.listener(all.keys(row))));
    List<String> flags = flags(heap);
    flags.add("-XX:+AlwaysPreTouch"); // so that no run has a page's first use to pay
    BrokerProcess broker = BrokerProcess.start(plugins(), flags, options);
    rows.forEach(row -> all.brokers.put(row, broker));
    return all;
  }

  /**
   * Starts three brokers for each row, which secure what they say to each other as the row does.
   */
  static RowBrokers clusters(Path folder, List<TransportRow> rows, List<String> more)
      throws IOException {
    RowBrokers all = new RowBrokers(folder, rows);
    try {
      for (TransportRow row : rows) {
        all.brokers.put(row, cluster(row, all.keys(row), more));
      }
      return all;
    } catch (IOException e) {
      all.close();
      throw e;
    }
  }

  private static BrokerProcess cluster(TransportRow row, KeyFiles keys, List<String> more)
      throws IOException {
    System.err.println("starting three brokers for " + row.label());
    List<String> options = new ArrayList<>(List.of("--cluster", "3"));
    options.addAll(more);
    options.addAll(ShortLog.options(SEGMENT, 128L << 20));
    options.addAll(row.listener(keys));
    options.addAll(List.of("--set", "inter.broker.listener.name=" + row.name()));
    return BrokerProcess.start(plugins(), flags("384m"), options);
  }

  private static List<String> flags(String heap) {
    List<String> flags = new ArrayList<>(List.of("-Xms" + heap, "-Xmx" + heap, "-XX:+UseG1GC"));
    flags.addAll(Cpu.FLAGS);
    return flags;
  }

  /** What a broker needs besides its own. */
  private static List<Path> plugins() {
    String needed = ".*(cipherlane-(core|transport|benchmarks)|netty-|bcp|gson|wildfly).*";
    return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
        .filter(jar -> jar.matches(needed))
        .map(Path::of)
        .toList();
  }

  private KeyFiles keys(TransportRow row) {
    return keys.get(row.keyAlgorithm());
  }

  /** What a client needs to connect as the row does. */
  Map<String, String> client(TransportRow row) {
    Map<String, String> settings = row.client(keys(row));
    BrokerProcess broker = brokers.get(row);
    String bootstrap =
        row == TransportRow.PLAINTEXT ? broker.bootstrap() : broker.bootstrap(row.name());
    settings.put("bootstrap.servers", bootstrap);
    return settings;
  }

  /** Of all brokers that have a part in the row's work. */
  List<Long> pids(TransportRow row) {
    BrokerProcess broker = brokers.get(row);
    return broker.nodes().isEmpty()
        ? List.of(broker.pid())
        : broker.nodes().stream().map(BrokerProcess.Node::pid).toList();
  }

  @Override
  public void close() throws IOException {
    for (BrokerProcess broker : new LinkedHashSet<>(brokers.values())) {
      broker.close();
    }
  }
}
