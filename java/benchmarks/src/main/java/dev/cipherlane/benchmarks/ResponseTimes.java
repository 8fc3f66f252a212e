package dev.cipherlane.benchmarks;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/** How long records took until they were acknowledged. Thread-safe. */
final class ResponseTimes {
  private static final double NANOS_PER_MICRO = 1_000;
  private static final double P50 = 50;
  private static final double P99 = 99;

  private final Histogram nanos = new ConcurrentHistogram(TimeUnit.MINUTES.toNanos(2), 3);

  /** Adds a record that began then, by {@link System#nanoTime()}, and is acknowledged now. */
  void addSince(long begin) {
    nanos.recordValue(System.nanoTime() - begin);
  }

  /** In microseconds; the 99th percentile is the {@link Report#VALUE}. */
  Map<String, Double> figures() {
    Map<String, Double> figures = new LinkedHashMap<>();
    figures.put(Report.VALUE, nanos.getValueAtPercentile(P99) / NANOS_PER_MICRO);
    figures.put("p50", nanos.getValueAtPercentile(P50) / NANOS_PER_MICRO);
    figures.put("longest", nanos.getMaxValue() / NANOS_PER_MICRO);
    return figures;
  }
}
