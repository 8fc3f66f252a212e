package dev.cipherlane.integration;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/** A program of Kafka's, such as a Connect worker, with this class path, as a child process. */
final class Child implements AutoCloseable {
  private static final int WAIT_SECONDS = 90;

  private final Process process;
  private final Path log;

  private Child(Process process, Path log) {
    this.process = process;
    this.log = log;
  }

  static Child start(Path folder, String program, Path... files) throws IOException {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx256m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                program));
    for (Path file : files) {
      command.add(file.toString());
    }
    Path log = folder.resolve(program + ".log");
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    return new Child(builder.redirectOutput(log.toFile()).start(), log);
  }

  /** Writes a properties file. */
  static Path properties(Path file, Map<String, ?> settings) throws IOException {
    String text =
        new TreeMap<>(settings)
            .entrySet().stream()
                .map(setting -> setting.getKey() + "=" + setting.getValue() + "\n")
                .collect(Collectors.joining());
    return Files.writeString(file, text);
  }

  /** Something that will be so. */
  interface Condition {
    boolean holds() throws Exception;
  }

  /** Waits until the condition holds; fails with the log if the program ends before that. */
  void await(String what, Condition condition) throws Exception {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(WAIT_SECONDS);
    while (!condition.holds()) {
      if (!process.isAlive() || System.nanoTime() > end) {
        throw new AssertionError("no " + what + ":\n" + Files.readString(log));
      }
      Thread.sleep(100);
    }
  }

  @Override
  public void close() {
    process.destroy();
    try {
      if (!process.waitFor(20, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
