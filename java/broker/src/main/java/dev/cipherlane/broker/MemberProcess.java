package dev.cipherlane.broker;

import java.io.BufferedReader;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** One broker of a cluster, as a child process that ends no later than this one. */
final class MemberProcess {
  private static final int READY_SECONDS = 90;
  private static final int STOP_SECONDS = 25;

  private final int id;
  private final Process process;
  private final CompletableFuture<Ready> ready = new CompletableFuture<>();

  /** Starts it; its warnings go where those of this process go. */
  MemberProcess(int id, List<String> command) throws IOException {
    this.id = id;
    process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    Thread reader = new Thread(this::read, "node-" + id);
    reader.setDaemon(true);
    reader.start();
  }

  private void read() {
    try (BufferedReader stdout = process.inputReader()) {
      String line = stdout.readLine();
      if (line == null) {
        throw new IOException("node " + id + " ended with exit code " + process.waitFor());
      }
      ready.complete(Ready.parse(line));
    } catch (IOException | InterruptedException e) {
      ready.completeExceptionally(e);
    }
  }

  Ready awaitReady() throws IOException {
    try {
      return ready.get(READY_SECONDS, TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      throw new IOException(e.getCause().getMessage(), e);
    } catch (TimeoutException e) {
      throw new IOException("node " + id + " is not ready after " + READY_SECONDS + " s", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    }
  }

  boolean isAlive() {
    return process.isAlive();
  }

  void kill() {
    process.destroyForcibly();
  }

  void stop() {
    try {
      process.getOutputStream().close();
    } catch (IOException e) {
      kill();
    }
  }

  /** Kills it when it does not end, for example because it is paused. */
  void awaitEnd() {
    try {
      if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly().waitFor();
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
