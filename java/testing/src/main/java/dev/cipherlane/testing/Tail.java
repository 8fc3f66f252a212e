package dev.cipherlane.testing;

import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.Reader;
import java.nio.charset.Charset;

/**
 * Reads a child's output all the time, so that the child never waits for a reader, and keeps the
 * end of it.
 */
final class Tail {
  static final int MAX_CHARS = 64 * 1024;

  private final StringBuilder text = new StringBuilder();
  private final Thread reader;

  Tail(InputStream in) {
    reader = new Thread(() -> read(in), "broker-stderr");
    reader.setDaemon(true);
    reader.start();
  }

  private void read(InputStream in) {
    char[] block = new char[4096];
    try (Reader chars = new InputStreamReader(in, Charset.defaultCharset())) {
      for (int n = chars.read(block); n >= 0; n = chars.read(block)) {
        keep(new String(block, 0, n));
      }
    } catch (IOException e) {
      keep("(cannot read on: " + e.getMessage() + ")");
    }
  }

  private synchronized void keep(String more) {
    text.append(more);
    text.delete(0, Math.max(0, text.length() - MAX_CHARS));
  }

  synchronized String soFar() {
    return text.toString();
  }

  /** The same once the child has ended and all of its output has been read. */
  String all() {
    try {
      reader.join(5000);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return soFar();
  }
}
