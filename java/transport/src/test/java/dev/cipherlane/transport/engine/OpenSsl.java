package dev.cipherlane.transport.engine;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.cipherlane.identity.TlsFiles;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A TLS 1.3 peer on OpenSSL, {@code openssl s_client} or {@code s_server}: it sends each line that
 * it is given, but takes one that begins with K or k as an order to change its keys. Not
 * thread-safe.
 */
final class OpenSsl implements AutoCloseable {
  private static final long PATIENCE_MS = 20_000;
  private static final Pattern LISTENS = Pattern.compile("^ACCEPT .*:(\\d+)$", Pattern.MULTILINE);

  private final Process process;
  private final ByteArrayOutputStream output = new ByteArrayOutputStream(); // thread-safe

  private OpenSsl(TlsFiles files, String... options) throws IOException {
    List<String> command = new ArrayList<>(List.of("openssl"));
    command.addAll(List.of(options));
    command.addAll(List.of("-tls1_3", "-verify_return_error", "-CAfile", files.ca().toString()));
    command.addAll(List.of("-cert", files.certificate().toString()));
    command.addAll(List.of("-key", files.key().toString()));
    process = new ProcessBuilder(command).redirectErrorStream(true).start();
    Thread reader = new Thread(this::read, "openssl");
    reader.setDaemon(true);
    reader.start();
  }

  /** Connects. */
  static OpenSsl client(TlsFiles files, int port) throws IOException {
    return new OpenSsl(files, "s_client", "-brief", "-connect", "127.0.0.1:" + port);
  }

  /** Listens for one connection, and demands a certificate. */
  static OpenSsl server(TlsFiles files) throws IOException {
    return new OpenSsl(
        files, "s_server", "-accept", "127.0.0.1:0", "-naccept", "1", "-Verify", "1");
  }

  /** Where it is not installed the test is skipped, but not in CI: there it must be. */
  static void mustBeInstalled() {
    boolean there =
        Stream.of(System.getenv("PATH").split(":"))
            .anyMatch(folder -> Files.isExecutable(Path.of(folder, "openssl")));
    assumeTrue(there || System.getenv("CI") != null, "NOT TESTED: openssl is not installed");
  }

  private void read() {
    try {
      process.getInputStream().transferTo(output);
    } catch (IOException e) {
      // It was closed.
    }
  }

  /** Without what a server says whenever it has read all that there is, in the midst of data. */
  private String output() {
    return output.toString(StandardCharsets.ISO_8859_1).replace("Read BLOCK\n", "");
  }

  /** Where a server listens. */
  int port() {
    await("ACCEPT ", 1);
    await("\n", 2);
    Matcher matcher = LISTENS.matcher(output());
    if (!matcher.find()) {
      throw new IllegalStateException("it does not listen: " + output());
    }
    return Integer.parseInt(matcher.group(1));
  }

  /**
   * Changes the keys with which it sends, and asks the peer to do so too, or does not. The next
   * line must not come before that is done, or it would be read together with the order.
   */
  void changeKeys(boolean ask) {
    send(ask ? "K" : "k");
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
    long end = System.currentTimeMillis() + PATIENCE_MS;
    while (count(text) < times) {
      if (System.currentTimeMillis() > end) {
        throw new IllegalStateException("not " + times + " times " + text + " in: " + output());
      }
      try {
        Thread.sleep(5);
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  private int count(String text) {
    String all = output();
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
