// `make -C java bench-latency`: what encrypting adds to the time of send().
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
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.Histogram;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * A plaintext and an encrypting producer in one Java machine send records in turn, at a steady
 * pace, and the time of each {@code send()} goes into a histogram: with warm keys, the first record
 * of a topic, and while leases are renewed and keys rotated every second. The histograms of all
 * runs go to standard error; the value of a row is the median of the runs' 99th percentiles.
 */
public final class BenchLatency {
  private static final int ROUNDS = Integer.getInteger("rounds", 5);
  private static final int SIZE = Integer.getInteger("size", 128);
  private static final int WARM_UP = 60_000;
  private static final int RECORDS = 20_000;
  private static final int TOPICS = 40;
  private static final long PACE_NANOS = TimeUnit.MICROSECONDS.toNanos(200);
  private static final double NANOS_PER_MICRO = 1_000;
  private static final double P50 = 50;
  private static final double P99 = 99;
  private static final double P999 = 99.9;

  private final Map<BenchKafka.Row, KafkaProducer<byte[], byte[]>> producers;
  private final byte[] value = new byte[SIZE];
  private final Report report =
      new Report("java-latency", "p99_us_of_send", ROUNDS, Map.of("records_per_run", "" + RECORDS));

  private BenchLatency(Map<BenchKafka.Row, KafkaProducer<byte[], byte[]>> producers)
      throws IOException {
    this.producers = producers;
  }

  /** Adds one run's figures to the histogram of each row. */
  private interface Run {
    void into(Map<BenchKafka.Row, Histogram> histograms);
  }

  /**
   * Runs the benchmark.
   *
   * @param args none
   * @throws IOException if a process cannot be started or ends early
   */
  public static void main(String[] args) throws IOException {
    Path folder = Files.createTempDirectory("cipherlane-bench-");
    try (var keyService = KeyServiceProcess.start(folder);
        var broker = BrokerProcess.start("--auto-create", "--set", "num.partitions=1")) {
      try (var plaintext = Settings.producer(broker, keyService, BenchKafka.Row.PLAINTEXT);
          var encrypted = Settings.producer(broker, keyService, BenchKafka.Row.ENCRYPTED)) {
        new BenchLatency(
                new EnumMap<>(
                    Map.of(
                        BenchKafka.Row.PLAINTEXT, plaintext,
                        BenchKafka.Row.ENCRYPTED, encrypted)))
            .run();
      }
    } finally {
      Settings.delete(folder);
    }
  }

  private void run() throws IOException {
    steady("bench-latency", WARM_UP).into(newHistograms());
    measure("send", round -> steady("bench-latency", RECORDS));
    measure("send-first-record", this::firstRecords);
    measure("send-while-renewing", round -> steady("bench-renewed", RECORDS));
    measure("send-while-rotating", round -> steady("bench-rotated", RECORDS));
    report.write();
  }

  private void measure(String operation, java.util.function.IntFunction<Run> runs) {
    String name = operation + "/" + SIZE + "B";
    var results = new LinkedHashMap<String, List<Map<String, Double>>>();
    Map<BenchKafka.Row, Histogram> all = newHistograms();
    for (int round = 0; round < ROUNDS; round++) {
      Map<BenchKafka.Row, Histogram> one = newHistograms();
      runs.apply(round).into(one);
      for (BenchKafka.Row row : BenchKafka.Row.values()) {
        all.get(row).add(one.get(row));
        results.computeIfAbsent(row.label(), label -> new ArrayList<>()).add(figures(one.get(row)));
      }
    }
    report.add(name, results);
    all.forEach((row, histogram) -> print(name + " " + row.label(), histogram));
  }

  private static Map<BenchKafka.Row, Histogram> newHistograms() {
    var histograms = new EnumMap<BenchKafka.Row, Histogram>(BenchKafka.Row.class);
    for (BenchKafka.Row row : BenchKafka.Row.values()) {
      histograms.put(row, new Histogram(TimeUnit.SECONDS.toNanos(60), 3));
    }
    return histograms;
  }

  private static Map<String, Double> figures(Histogram nanos) {
    Map<String, Double> figures = new LinkedHashMap<>();
    figures.put(Report.VALUE, nanos.getValueAtPercentile(P99) / NANOS_PER_MICRO);
    figures.put("p50", nanos.getValueAtPercentile(P50) / NANOS_PER_MICRO);
    figures.put("p999", nanos.getValueAtPercentile(P999) / NANOS_PER_MICRO);
    figures.put("longest", nanos.getMaxValue() / NANOS_PER_MICRO);
    return figures;
  }

  private static void print(String name, Histogram nanos) {
    System.err.println("-- " + name + ", microseconds");
    nanos.outputPercentileDistribution(System.err, 1, NANOS_PER_MICRO);
  }

  /** Both producers in turn, one record of each at a time, the first of them changing. */
  private Run steady(String topic, int records) {
    return histograms -> {
      for (BenchKafka.Row row : BenchKafka.Row.values()) {
        send(row, topic(topic, row), histograms.get(row));
      }
      long next = System.nanoTime();
      for (int i = 0; i < records; i++) {
        for (BenchKafka.Row row : BenchKafka.order(i)) {
          send(row, topic(topic, row), histograms.get(row));
        }
        next += PACE_NANOS;
        LockSupport.parkNanos(next - System.nanoTime());
      }
    };
  }

  /** The topics exist, and the producers know them: what is new is only the key. */
  private Run firstRecords(int round) {
    return histograms -> {
      for (int i = 0; i < TOPICS; i++) {
        for (BenchKafka.Row row : BenchKafka.order(i)) {
          String topic = topic("bench-first-" + round + "-" + i, row);
          producers.get(row).partitionsFor(topic);
          send(row, topic, histograms.get(row));
        }
      }
    };
  }

  private static String topic(String name, BenchKafka.Row row) {
    return name + "-" + row.label();
  }

  private void send(BenchKafka.Row row, String topic, Histogram nanos) {
    ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(topic, value);
    long began = System.nanoTime();
    var unused = producers.get(row).send(record);
    nanos.recordValue(System.nanoTime() - began);
  }
}
