package dev.cipherlane.benchmarks;

import java.io.Closeable;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Supplier;

/** Clients that work at the same time, each in a thread. */
final class Pool<C extends Closeable> implements Closeable {
  private final List<C> clients = new ArrayList<>();
  private final ExecutorService threads;

  Pool(int count, Supplier<C> client) {
    threads = Executors.newFixedThreadPool(count, Pool::daemon);
    for (int i = 0; i < count; i++) {
      clients.add(client.get());
    }
  }

  /** Does not keep a Java machine whose main thread has failed. */
  private static Thread daemon(Runnable work) {
    Thread thread = new Thread(work);
    thread.setDaemon(true);
    return thread;
  }

  /** What each client does. */
  interface Work<C> {
    void with(C client) throws Exception;
  }

  List<C> clients() {
    return clients;
  }

  /** Has all work, and waits for all; one that fails fails the run. */
  void each(Work<C> work) throws Exception {
    List<Callable<Void>> all = new ArrayList<>();
    for (C client : clients) {
      all.add(
          () -> {
            work.with(client);
            return null;
          });
    }
    for (Future<Void> one : threads.invokeAll(all)) {
      one.get();
    }
  }

  @Override
  public void close() throws IOException {
    threads.shutdown();
    for (C client : clients) {
      client.close();
    }
  }
}
