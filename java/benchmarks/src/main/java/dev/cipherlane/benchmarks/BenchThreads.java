// `make -C java bench-threads`: many threads that send through one producer.
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
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * 1, 2 and 64 threads share one plaintext and then one encrypting producer; CPU microseconds per
 * record of the whole client, and records per second. With as many threads as cores the second
 * figure says how encrypting scales; with more, whether they get into each other's way.
 */
public final class BenchThreads {
  private static final int ROUNDS = Integer.getInteger("rounds", 5);
  private static final int SIZE = Integer.getInteger("size", 128);
  private static final int WARM_UPS = 4;
  private static final int RECORDS = 600_000;
  private static final int[] THREADS = {1, 2, 64};
  private static final double NANOS_PER_MICRO = 1_000;
  private static final double NANOS_PER_SECOND = 1e9;

  private final Map<BenchKafka.Row, KafkaProducer<byte[], byte[]>> producers;
  private final Report report;

  private BenchThreads(Map<BenchKafka.Row, KafkaProducer<byte[], byte[]>> producers)
      throws IOException {
    this.producers = producers;
    this.report = new Report("java-threads", "cpu_us_per_record", ROUNDS, Map.of());
  }

  /**
   * Runs the benchmark.
   *
   * @param args none
   * @throws IOException if a process cannot be started
   * @throws InterruptedException if interrupted
   */
  public static void main(String[] args) throws IOException, InterruptedException {
    Path folder = Files.createTempDirectory("cipherlane-bench-");
    try (var keyService = KeyServiceProcess.start(folder);
        var broker = BrokerProcess.start("--topics", topics())) {
      try (var plaintext = Settings.producer(broker, keyService, BenchKafka.Row.PLAINTEXT);
          var encrypted = Settings.producer(broker, keyService, BenchKafka.Row.ENCRYPTED)) {
        new BenchThreads(
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

  private static String topics() {
    return topic(BenchKafka.Row.PLAINTEXT) + ":1," + topic(BenchKafka.Row.ENCRYPTED) + ":1";
  }

  private static String topic(BenchKafka.Row row) {
    return "bench-threads-" + row.label();
  }

  private void run() throws IOException, InterruptedException {
    for (int round = 0; round < WARM_UPS; round++) {
      for (BenchKafka.Row row : BenchKafka.order(round)) {
        send(row, THREADS[round % THREADS.length]);
      }
    }
    for (int threads : THREADS) {
      String name = "produce-threads" + threads + "/" + SIZE + "B/1conn";
      var results = new LinkedHashMap<String, List<Map<String, Double>>>();
      for (BenchKafka.Row row : BenchKafka.Row.values()) {
        results.put(row.label(), new ArrayList<>());
      }
      for (int round = 0; round < ROUNDS; round++) {
        for (BenchKafka.Row row : BenchKafka.order(round)) {
          Map<String, Double> run = send(row, threads);
          results.get(row.label()).add(run);
          System.err.printf("%-28s %-9s run %d  %s%n", name, row.label(), round + 1, run);
        }
      }
      report.add(name, results);
    }
    report.write();
  }

  /** All threads together send a run's records; it ends when the broker has them. */
  private Map<String, Double> send(BenchKafka.Row row, int threads)
      throws IOException, InterruptedException {
    long pid = ProcessHandle.current().pid();
    Cpu cpu = Cpu.of(pid);
    long began = System.nanoTime();
    List<Thread> all = new ArrayList<>();
    for (int i = 0; i < threads; i++) {
      Thread thread = new Thread(() -> send(row, RECORDS / threads, new byte[SIZE]));
      thread.start();
      all.add(thread);
    }
    for (Thread thread : all) {
      thread.join();
    }
    producers.get(row).flush();
    double seconds = (System.nanoTime() - began) / NANOS_PER_SECOND;
    int records = RECORDS / threads * threads;
    Map<String, Double> figures = new LinkedHashMap<>();
    figures.put(Report.VALUE, Cpu.of(pid).since(cpu).work() / NANOS_PER_MICRO / records);
    figures.put("records_per_second", records / seconds);
    return figures;
  }

  private void send(BenchKafka.Row row, int records, byte[] value) {
    KafkaProducer<byte[], byte[]> producer = producers.get(row);
    for (int i = 0; i < records; i++) {
      var unused = producer.send(new ProducerRecord<>(topic(row), value));
    }
  }
}
