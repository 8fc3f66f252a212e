package dev.cipherlane.transport.engine;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A TLS 1.3 peer in a process of its own: it sends each line that it is given, and says what it
 * receives. Not thread-safe.
 */
class LinePeer implements AutoCloseable {
  private static final long PATIENCE_MS = 20_000;
  private static final Pattern LISTENS = Pattern.compile("ACCEPT .*:(\\d+)\n");

  private final Process process;
  private final ByteArrayOutputStream output = new ByteArrayOutputStream(); // thread-safe

  LinePeer(List<String> command) throws IOException {
    process = new ProcessBuilder(command).redirectErrorStream(true).start();
    Thread reader = new Thread(this::read, "peer");
    reader.setDaemon(true);
    reader.start();
  }

  /** Where a program is not installed the test is skipped, but not in CI: there it must be. */
  static void mustBeInstalled(String program) {
    boolean there =
        Stream.of(System.getenv("PATH").split(":"))
            .anyMatch(folder -> Files.isExecutable(Path.of(folder, program)));
    assumeTrue(
        there || System.getenv("CI") != null, "NOT TESTED: " + program + " is not installed");
  }

  private void read() {
    try {
      process.getInputStream().transferTo(output);
    } catch (IOException e) {
      // It was closed.
    }
  }

  /** All that it has said and received. */
  String output() {
    return output.toString(StandardCharsets.ISO_8859_1);
  }

  /** Where a server listens, which it says first. */
  int port() {
    String said = awaitThat("it listens", LISTENS.asPredicate());
    return LISTENS
        .matcher(said)
        .results()
        .mapToInt(found -> Integer.parseInt(found.group(1)))
        .findFirst()
        .orElseThrow();
  }

  /** Sends a line. */
  void send(String line) {
    try {
      process.getOutputStream().write((line + "\n").getBytes(StandardCharsets.ISO_8859_1));
      process.getOutputStream().flush();
    } catch (IOException e) {
      throw new UncheckedIOException("it ended: " + output(), e);
    }
  }

  /** Waits until it has said so, or has received it, so many times. */
  void await(String text, int times) {
    awaitThat(times + " times " + text, said -> count(said, text) >= times);
  }

  /** Returns what it had said by then. */
  private String awaitThat(String what, Predicate<String> holds) {
    long end = System.currentTimeMillis() + PATIENCE_MS;
    String said = output();
    while (!holds.test(said)) {
      if (System.currentTimeMillis() > end) {
        throw new IllegalStateException("not: " + what + ", in: " + said);
      }
      try {
        Thread.sleep(5);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
      said = output();
    }
    return said;
  }

  private static int count(String all, String text) {
    int count = 0;
    for (int at = all.indexOf(text); at >= 0; at = all.indexOf(text, at + text.length())) {
      count++;
    }
    return count;
  }

  @Override
  public void close() {
    process.destroyForcibly();
  }
}
