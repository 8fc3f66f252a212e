// How the log of a benchmark's broker stays short.
package dev.cipherlane.benchmarks;

import java.util.List;

/**
 * A log that loses its end twice a second, while it grows. Deleted by gigabytes every some seconds,
 * as Kafka does by default, its memory goes back to the host of a virtual machine, and each page
 * then costs a fault there to come again: for seconds a record took twice the broker's CPU time.
 */
final class ShortLog {
  private ShortLog() {}

  /**
   * Options of the broker.
   *
   * @param segment bytes of a file
   * @param retention bytes that are kept of each partition
   */
  static List<String> options(long segment, long retention) {
    return List.of(
        "--set", "log.segment.bytes=" + segment,
        "--set", "log.retention.bytes=" + retention,
        "--set", "log.initial.task.delay.ms=500",
        "--set", "log.retention.check.interval.ms=500",
        "--set", "log.segment.delete.delay.ms=100");
  }
}
