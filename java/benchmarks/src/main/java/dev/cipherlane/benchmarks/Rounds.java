// How often and in which order rows are measured.
package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Runs all rows in turn, another one first in each round, so that the machine's moods meet all. */
final class Rounds {
  /** Rounds that count. */
  static final int COUNT = Integer.getInteger("rounds", 5);

  private Rounds() {}

  /** One run of one row. */
  interface Run<R> {
    Map<String, Double> of(R row) throws IOException;
  }

  /**
   * Measures a case.
   *
   * @param name of the case
   * @param warmUps rounds before those that count
   * @return the figures of each run, by row
   */
  static <R extends Labelled> Map<String, List<Map<String, Double>>> measure(
      String name, List<R> rows, int warmUps, Run<R> run) throws IOException {
    Map<String, List<Map<String, Double>>> runs = new LinkedHashMap<>();
    rows.forEach(row -> runs.put(row.label(), new ArrayList<>()));
    List<R> order = new ArrayList<>(rows);
    for (int round = -warmUps; round < COUNT; round++) {
      Collections.rotate(order, 1);
      for (R row : order) {
        Map<String, Double> figures = run.of(row);
        progress(name, row, round, figures);
        if (round >= 0) {
          runs.get(row.label()).add(figures);
        }
      }
    }
    return runs;
  }

  private static void progress(String name, Labelled row, int round, Map<String, Double> figures) {
    System.err.printf(
        "%-28s %-22s %-7s  %s%n",
        name,
        row.label(),
        round < 0 ? "warm-up" : "run " + (round + 1),
        figures.entrySet().stream()
            .map(figure -> String.format("%s %.2f", figure.getKey(), figure.getValue()))
            .collect(Collectors.joining("  ")));
  }
}
