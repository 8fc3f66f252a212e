package dev.cipherlane.identity;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/** Pauses between attempts that fail: each twice the last one [CL-IDN-032]. Not thread-safe. */
final class Backoff {
  private static final long LONGEST = TimeUnit.MINUTES.toNanos(1);
  private static final double JITTER = 0.2;

  private final long shortest;
  private long pause;

  Backoff(Duration shortest) {
    this.shortest = Math.min(shortest.toNanos(), LONGEST);
    this.pause = this.shortest;
  }

  /** Nanoseconds until the next attempt. */
  long next() {
    double jitter = ThreadLocalRandom.current().nextDouble(1 - JITTER, 1 + JITTER);
    long now = pause;
    pause = Math.min(LONGEST, pause * 2);
    return (long) (now * jitter);
  }

  void reset() {
    pause = shortest;
  }
}
