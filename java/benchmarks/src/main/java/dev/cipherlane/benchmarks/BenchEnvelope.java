// `make -C java bench-envelope`: what an envelope costs, against the bare cipher.
package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;

/**
 * Runs {@link EnvelopeBenchmarks} with JMH, one fork for each row and round in turn, so that the
 * machine's moods meet all rows alike. The bare cipher is that of Amazon's provider, which is the
 * faster one and which Cipherlane uses too, or with the property {@code gcm=runtime} the runtime's.
 */
public final class BenchEnvelope {
  private static final int ROUNDS = Integer.getInteger("rounds", 5);
  private static final int[] ALL_SIZES = {100, 1_024, 8_192, 102_400};
  private static final int[] SIZES =
      Integer.getInteger("size") == null ? ALL_SIZES : new int[] {Integer.getInteger("size")};
  private static final boolean RUNTIME_GCM = "runtime".equals(System.getProperty("gcm"));
  private static final String CORRETTO =
      "com.amazon.corretto.crypto.provider.AmazonCorrettoCryptoProvider";
  private static final long ITERATION_MILLIS = 200;

  /** Rows by operation, the baseline first. */
  private static final Map<String, Map<String, String>> METHODS = methods();

  private BenchEnvelope() {}

  private static Map<String, Map<String, String>> methods() {
    Map<String, String> encrypt = new LinkedHashMap<>();
    encrypt.put("raw-cipher", "rawEncrypt");
    encrypt.put("cipherlane", "cipherlaneEncrypt");
    encrypt.put("tink", "tinkEncrypt");
    Map<String, String> decrypt = new LinkedHashMap<>();
    decrypt.put("raw-cipher", "rawDecrypt");
    decrypt.put("cipherlane", "cipherlaneDecrypt");
    decrypt.put("tink", "tinkDecrypt");
    Map<String, Map<String, String>> all = new LinkedHashMap<>();
    all.put("encrypt", encrypt);
    all.put("decrypt", decrypt);
    return all;
  }

  /**
   * Runs the benchmark.
   *
   * @param args none
   * @throws IOException if the key service cannot be started
   * @throws RunnerException if JMH fails
   */
  public static void main(String[] args) throws IOException, RunnerException {
    Path folder = Files.createTempDirectory("cipherlane-bench-");
    String gcm = RUNTIME_GCM ? "runtime" : "corretto";
    Report report = new Report("java-envelope", "ns_per_record", ROUNDS, Map.of("gcm", gcm));
    try (var keyService = KeyServiceProcess.start(folder)) {
      for (String name : List.of("producer", "consumer")) {
        Settings.write(folder.resolve(name), keyService.settings(name));
      }
      for (String operation : METHODS.keySet()) {
        for (int size : SIZES) {
          report.add(operation + "/" + size + "B", measure(METHODS.get(operation), size, folder));
        }
      }
    } finally {
      Settings.delete(folder);
    }
    report.write();
  }

  private static Map<String, List<Map<String, Double>>> measure(
      Map<String, String> methods, int size, Path folder) throws RunnerException {
    Map<String, List<Map<String, Double>>> runs = new LinkedHashMap<>();
    for (int round = 0; round < ROUNDS; round++) {
      for (Map.Entry<String, String> row : methods.entrySet()) {
        Map<String, Double> run = measure(row.getValue(), size, folder);
        runs.computeIfAbsent(row.getKey(), name -> new ArrayList<>()).add(run);
        System.err.printf(
            "%-20s %6d B  run %d  %8.0f ns  %4.0f bytes allocated beside the result%n",
            row.getValue(), size, round + 1, run.get(Report.VALUE), run.get("garbage_bytes"));
      }
    }
    return runs;
  }

  private static Map<String, Double> measure(String method, int size, Path folder)
      throws RunnerException {
    TimeValue iteration = TimeValue.milliseconds(ITERATION_MILLIS);
    var options =
        new OptionsBuilder()
            .include("EnvelopeBenchmarks\\." + method + "$")
            .param("size", String.valueOf(size))
            .forks(1)
            .warmupIterations(4)
            .warmupTime(TimeValue.milliseconds(2 * ITERATION_MILLIS))
            .measurementIterations(3)
            .measurementTime(iteration)
            .addProfiler(GCProfiler.class)
            .jvmArgs(
                "-Xmx512m",
                "-D" + EnvelopeBenchmarks.FOLDER + "=" + folder,
                "-D" + EnvelopeBenchmarks.PROVIDER + "=" + (RUNTIME_GCM ? "" : CORRETTO))
            .verbosity(org.openjdk.jmh.runner.options.VerboseMode.SILENT)
            .build();
    RunResult result = new Runner(options).run().iterator().next();
    Map<String, Double> figures = new LinkedHashMap<>();
    figures.put(Report.VALUE, result.getPrimaryResult().getScore());
    double allocated = result.getSecondaryResults().get("gc.alloc.rate.norm").getScore();
    figures.put("allocated_bytes", allocated);
    figures.put("garbage_bytes", allocated - size - EnvelopeBenchmarks.OVERHEAD.get(method));
    return figures;
  }
}
