// The benchmark's result: one JSON object, as the last line of standard output and in build/bench.
package dev.cipherlane.benchmarks;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;

/** Medians, and medians of the pairwise ratios to the baseline. Not thread-safe. */
final class Report {
  /** Name of the figure that is compared; others are only told. */
  static final String VALUE = "value";

  private static final double HUNDRED = 100;
  private static final Path CPU_INFO = Path.of("/proc/cpuinfo");

  private final JsonObject report = new JsonObject();
  private final JsonArray rows = new JsonArray();

  /**
   * Begins a report.
   *
   * @param notes what else is to be told of the conditions
   */
  Report(String name, String unit, int runs, Map<String, String> notes) throws IOException {
    JsonObject machine = new JsonObject();
    machine.addProperty("cores", Runtime.getRuntime().availableProcessors());
    machine.addProperty("cpu", cpu());
    report.addProperty("benchmark", name);
    report.addProperty("unit", unit);
    report.addProperty("runs", runs);
    notes.forEach(report::addProperty);
    report.add("machine", machine);
    report.add("rows", rows);
  }

  /**
   * Adds a case.
   *
   * @param results by row, the baseline first: the figures of each run
   */
  void add(String benchmarkCase, Map<String, List<Map<String, Double>>> results) {
    String baseline = results.keySet().iterator().next();
    results.forEach(
        (row, runs) -> {
          JsonObject json = new JsonObject();
          json.addProperty("case", benchmarkCase);
          json.addProperty("row", row);
          runs.get(0).keySet().forEach(name -> json.addProperty(name, median(figures(runs, name))));
          json.addProperty("min", round(Collections.min(figures(runs, VALUE))));
          json.addProperty("max", round(Collections.max(figures(runs, VALUE))));
          if (!row.equals(baseline)) {
            List<Double> other = figures(results.get(baseline), VALUE);
            json.addProperty("baseline", baseline);
            json.addProperty("ratio", median(pairs(figures(runs, VALUE), other, true)));
            json.addProperty("extra", median(pairs(figures(runs, VALUE), other, false)));
          }
          rows.add(json);
        });
  }

  void write() throws IOException {
    Path file = Path.of("build", "bench", report.get("benchmark").getAsString() + ".json");
    Files.createDirectories(file.getParent());
    Files.writeString(file, report + "\n");
    System.out.println(report);
  }

  private static String cpu() throws IOException {
    if (!Files.isReadable(CPU_INFO)) {
      return System.getProperty("os.arch");
    }
    return Files.readAllLines(CPU_INFO).stream()
        .filter(line -> line.startsWith("model name"))
        .map(line -> line.substring(line.indexOf(':') + 1).strip())
        .findFirst()
        .orElse(System.getProperty("os.arch"));
  }

  private static List<Double> figures(List<Map<String, Double>> runs, String name) {
    return runs.stream().map(run -> run.get(name)).toList();
  }

  private static List<Double> pairs(List<Double> own, List<Double> baseline, boolean ratio) {
    return IntStream.range(0, own.size())
        .mapToObj(i -> ratio ? own.get(i) / baseline.get(i) : own.get(i) - baseline.get(i))
        .toList();
  }

  private static double median(List<Double> values) {
    List<Double> sorted = new ArrayList<>(values);
    sorted.sort(null);
    int middle = sorted.size() / 2;
    return round(
        sorted.size() % 2 == 1
            ? sorted.get(middle)
            : (sorted.get(middle - 1) + sorted.get(middle)) / 2);
  }

  private static double round(double value) {
    return Math.round(value * HUNDRED) / HUNDRED;
  }
}
