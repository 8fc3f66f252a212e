// How the log of a benchmark's broker stays short.
package dev.cipherlane.benchmarks;

import java.util.List;

/**
 * A log that loses its end twice a second, while it grows. Where it was deleted by gigabytes every
 * ten seconds, a record took twice the broker's CPU time for seconds after: writing to fresh pages
 * was slow, on a virtual machine most likely because freed memory had gone back to its host.
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
