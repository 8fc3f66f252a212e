package dev.cipherlane.keys;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The clock of leases: it runs on through suspend, and never back. CL-KEY-005 */
class SystemLeaseClockTest {
  private static final long SECOND = TimeUnit.SECONDS.toNanos(1);

  private final AtomicLong running = new AtomicLong(5 * SECOND);
  private final AtomicLong through = new AtomicLong(70 * SECOND);
  private final SystemLeaseClock clock = new SystemLeaseClock(running::get, through::get);

  private void pass(long runningNanos, long throughNanos) {
    running.addAndGet(runningNanos);
    through.addAndGet(throughNanos);
  }

  @Test
  void runsWithTheRunningClock() {
    long begin = clock.now();
    pass(SECOND, SECOND);
    assertThat(clock.now() - begin).isEqualTo(SECOND);
  }

  @Test
  void countsTheTimeOfSleep() {
    long begin = clock.now();
    pass(SECOND, 3600 * SECOND);
    assertThat(clock.now() - begin).isEqualTo(3600 * SECOND);
    pass(SECOND, 3600 * SECOND);
    assertThat(clock.now() - begin).isEqualTo(7200 * SECOND);
  }

  @Test
  void looksAtTheSecondClockWithinAHundredMilliseconds() {
    long begin = clock.now();
    pass(SECOND / 20, SECOND);
    assertThat(clock.now() - begin).isEqualTo(SECOND / 20);
    pass(SECOND / 20, 0);
    assertThat(clock.now() - begin).isEqualTo(SECOND);
  }

  @Test
  void neverGoesBack() {
    long begin = clock.now();
    pass(SECOND, -100 * SECOND);
    assertThat(clock.now() - begin).isEqualTo(SECOND);
    pass(SECOND, -100 * SECOND);
    assertThat(clock.now() - begin).isEqualTo(2 * SECOND);
  }

  @Test
  void thisMachinesClockRuns() throws InterruptedException {
    long begin = LeaseClock.system().now();
    Thread.sleep(150);
    assertThat(LeaseClock.system().now() - begin).isBetween(SECOND / 10, 60 * SECOND);
  }

  @Test
  void readsProcUptime(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("uptime"), "350735.47 234388.90\n");
    assertThat(SystemLeaseClock.uptimeNanos(file)).isEqualTo(350_735_470_000_000L);
    for (String wrong : new String[] {"", "350735.47", "x y", "1.0000000001 2"}) {
      Files.writeString(file, wrong);
      assertThatThrownBy(() -> SystemLeaseClock.uptimeNanos(file))
          .isInstanceOfAny(IOException.class, NumberFormatException.class);
    }
  }
}
