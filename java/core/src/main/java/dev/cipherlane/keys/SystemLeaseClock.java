package dev.cipherlane.keys;

import java.io.IOException;
import java.io.InputStream;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * The clock of {@code spec/decisions/0004}: Java's monotonic clock, which may stand still while the
 * machine sleeps, put forward by what a second clock says more, looked at every 100 ms of running
 * time at most.
 */
final class SystemLeaseClock implements LeaseClock {
  static final SystemLeaseClock INSTANCE =
      new SystemLeaseClock(System::nanoTime, second(Path.of("/proc/uptime")));

  private static final long SYNC_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final LongSupplier running;
  private final LongSupplier through;
  private final long start;

  private volatile long ahead;
  private volatile long syncedAt;

  /**
   * Makes a clock.
   *
   * @param running nanoseconds of a clock that never goes back
   * @param through nanoseconds of a clock that runs on through suspend
   */
  SystemLeaseClock(LongSupplier running, LongSupplier through) {
    this.running = running;
    this.through = through;
    this.syncedAt = running.getAsLong();
    this.start = through.getAsLong() - syncedAt;
  }

  @Override
  public long now() {
    long nanos = running.getAsLong();
    if (nanos - syncedAt >= SYNC_NANOS) {
      sync();
    }
    return nanos + ahead;
  }

  /** Never goes back: the wall clock, where it has to serve, only ends leases early. */
  private synchronized void sync() {
    long nanos = running.getAsLong();
    if (nanos - syncedAt >= SYNC_NANOS) {
      ahead = Math.max(ahead, through.getAsLong() - nanos - start);
      syncedAt = nanos;
    }
  }

  private static LongSupplier second(Path uptime) {
    try {
      uptimeNanos(uptime);
      return () -> {
        try {
          return uptimeNanos(uptime);
        } catch (IOException | NumberFormatException e) {
          throw new IllegalStateException("cannot read " + uptime + " any more", e);
        }
      };
    } catch (IOException | NumberFormatException e) {
      return () -> TimeUnit.MILLISECONDS.toNanos(System.currentTimeMillis());
    }
  }

  /** Seconds with two decimals, a space, and something else. */
  static long uptimeNanos(Path file) throws IOException {
    try (InputStream in = Files.newInputStream(file)) {
      String text = new String(in.readNBytes(64), StandardCharsets.US_ASCII);
      int end = text.indexOf(' ');
      if (end < 0) {
        throw new IOException("not what /proc/uptime holds");
      }
      return new BigDecimal(text.substring(0, end)).movePointRight(9).longValueExact();
    } catch (ArithmeticException e) {
      throw new IOException("not what /proc/uptime holds", e);
    }
  }
}
