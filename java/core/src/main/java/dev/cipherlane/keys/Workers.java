package dev.cipherlane.keys;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongUnaryOperator;

/**
 * The threads of a cache, all daemons: up to four that ask the key service, which end when idle,
 * and one that wipes what has ended.
 */
final class Workers implements Executor, AutoCloseable {
  private static final int MAX_REQUESTS = 4;
  private static final long IDLE_SECONDS = 10;
  private static final long LONGEST_PAUSE = TimeUnit.SECONDS.toNanos(1);
  private static final long SHORTEST_PAUSE = TimeUnit.MILLISECONDS.toNanos(10);

  private final ThreadPoolExecutor requests;
  private final CountDownLatch closed = new CountDownLatch(1);

  /**
   * Starts the thread that wipes.
   *
   * @param name for the names of the threads
   * @param expire wipes what has ended by the time it is given, and gives the nanoseconds until the
   *     next one ends
   * @param clock tells the time
   */
  Workers(String name, LongUnaryOperator expire, LeaseClock clock) {
    requests =
        new ThreadPoolExecutor(
            MAX_REQUESTS,
            MAX_REQUESTS,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            daemons("cipherlane-" + name));
    requests.allowCoreThreadTimeOut(true);
    daemons("cipherlane-" + name + "-wipe").newThread(() -> wipe(expire, clock)).start();
  }

  private static ThreadFactory daemons(String name) {
    AtomicInteger count = new AtomicInteger();
    return task -> {
      Thread thread = new Thread(task, name + "-" + count.incrementAndGet());
      thread.setDaemon(true);
      return thread;
    };
  }

  private void wipe(LongUnaryOperator expire, LeaseClock clock) {
    long pause = LONGEST_PAUSE;
    while (!closedWithin(pause)) {
      pause = Math.max(SHORTEST_PAUSE, Math.min(LONGEST_PAUSE, next(expire, clock)));
    }
  }

  private static long next(LongUnaryOperator expire, LeaseClock clock) {
    try {
      return expire.applyAsLong(clock.now());
    } catch (RuntimeException e) {
      // A clock that cannot be read stops all use of keys; it must not stop the wiping for good.
      return LONGEST_PAUSE;
    }
  }

  private boolean closedWithin(long nanos) {
    try {
      return closed.await(nanos, TimeUnit.NANOSECONDS);
    } catch (InterruptedException e) {
      // Nobody who means well interrupts it, and without it keys would stay in memory.
      return false;
    }
  }

  /**
   * Runs a request.
   *
   * @throws java.util.concurrent.RejectedExecutionException after {@link #close}
   */
  @Override
  public void execute(Runnable request) {
    requests.execute(request);
  }

  @Override
  public void close() {
    requests.shutdownNow();
    closed.countDown();
  }
}
