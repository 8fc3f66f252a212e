// The benchmark's result: one JSON object, as the last line of standard output and in build/bench.
package dev.cipherlane.benchmarks;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.cipherlane.benchmarks.BenchKafka.Row;
import dev.cipherlane.benchmarks.BenchKafka.Run;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;

/** Medians, and medians of the pairwise ratios to the baseline. Not thread-safe. */
final class Report {
  private static final double HUNDRED = 100;
  private static final Path CPU_INFO = Path.of("/proc/cpuinfo");

  private final String name;
  private final int runs;
  private final JsonArray rows = new JsonArray();

  Report(String name, int runs) {
    this.name = name;
    this.runs = runs;
  }

  void add(String benchmarkCase, Map<Row, List<Run>> results) {
    List<Run> baseline = results.get(Row.PLAINTEXT);
    for (Row row : Row.values()) {
      List<Run> own = results.get(row);
      JsonObject json = new JsonObject();
      json.addProperty("case", benchmarkCase);
      json.addProperty("row", row.label());
      json.addProperty("value", median(each(own, Run::total)));
      json.addProperty("min", round(own.stream().mapToDouble(Run::total).min().orElseThrow()));
      json.addProperty("max", round(own.stream().mapToDouble(Run::total).max().orElseThrow()));
      json.addProperty("client", median(each(own, Run::client)));
      json.addProperty("broker", median(each(own, Run::broker)));
      json.addProperty("records_per_second", Math.round(median(each(own, Run::throughput))));
      if (row != Row.PLAINTEXT) {
        json.addProperty("baseline", Row.PLAINTEXT.label());
        json.addProperty("ratio", median(pairs(own, baseline, true)));
        json.addProperty("extra", median(pairs(own, baseline, false)));
      }
      rows.add(json);
    }
  }

  void write() throws IOException {
    JsonObject machine = new JsonObject();
    machine.addProperty("cores", Runtime.getRuntime().availableProcessors());
    machine.addProperty("cpu", cpu());
    JsonObject report = new JsonObject();
    report.addProperty("benchmark", name);
    report.addProperty("unit", "cpu_us_per_record");
    report.addProperty("runs", runs);
    report.addProperty("producer", System.getProperty("producer", ""));
    report.add("machine", machine);
    report.add("rows", rows);
    Path file = Path.of("build", "bench", name + ".json");
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

  private static List<Double> each(List<Run> runs, ToDoubleFunction<Run> figure) {
    return runs.stream().map(figure::applyAsDouble).toList();
  }

  private static List<Double> pairs(List<Run> own, List<Run> baseline, boolean ratio) {
    return IntStream.range(0, own.size())
        .mapToObj(i -> compared(own.get(i).total(), baseline.get(i).total(), ratio))
        .toList();
  }

  private static double compared(double own, double baseline, boolean ratio) {
    return ratio ? own / baseline : own - baseline;
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
