package dev.cipherlane;

import dev.cipherlane.keys.LeaseClock;

/**
 * What records took lately: a moving mean of samples. Each record reads the clock once anyway; only
 * a sampled one, of some 256, reads it again. Thread-safe: of two samples at once one may be lost.
 */
final class AddedTime {
  /** Records whose time ends in these bits are sampled: the last bits of a clock are random. */
  private static final long MASK = 255;

  private static final double WEIGHT = 1.0 / 64;

  private volatile double mean = Double.NaN;

  /**
   * To be called when a record is done.
   *
   * @param began what the clock said when it began, in nanoseconds
   * @param clock asked again if the record is to be sampled
   */
  void sample(long began, LeaseClock clock) {
    if ((began & MASK) == 0) {
      add(clock.now() - began);
    }
  }

  private void add(long nanos) {
    double known = mean;
    mean = Double.isNaN(known) ? nanos : known + (nanos - known) * WEIGHT;
  }

  /** Nanoseconds; NaN before the first sample. */
  double mean() {
    return mean;
  }
}
