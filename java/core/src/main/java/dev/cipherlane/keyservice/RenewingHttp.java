package dev.cipherlane.keyservice;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.keys.LeaseClock;
import java.io.IOException;
import java.net.http.HttpClient;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * The HTTP client, made anew when the PEM files have changed [CL-KEY-016]: certificates are
 * short-lived, and whoever renews them replaces the files. Thread-safe.
 */
final class RenewingHttp {
  private static final System.Logger LOG = System.getLogger(RenewingHttp.class.getName());

  /** Nanoseconds between two looks at the files. */
  static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(30);

  /** What changes when a file is written or replaced, also through a link. */
  private record Stamp(Object modified, long size, Object file) {
    static Stamp of(Path path) throws IOException {
      var attributes = Files.readAttributes(path, BasicFileAttributes.class);
      return new Stamp(attributes.lastModifiedTime(), attributes.size(), attributes.fileKey());
    }
  }

  private final TlsFiles files;
  private final Duration connectTimeout;
  private final LeaseClock clock;
  private volatile HttpClient http;
  private volatile long lookedAt;
  private Optional<List<Stamp>> seen;

  /**
   * Makes the first client.
   *
   * @throws CipherlaneException {@code configuration-invalid} if a file cannot be used
   */
  RenewingHttp(TlsFiles files, Duration connectTimeout, LeaseClock clock) {
    this.files = files;
    this.connectTimeout = connectTimeout;
    this.clock = clock;
    this.lookedAt = clock.now();
    this.seen = stamps();
    this.http = client();
  }

  private HttpClient client() {
    return HttpClient.newBuilder()
        .sslContext(Tls.context(files))
        .sslParameters(Tls.parameters())
        .connectTimeout(connectTimeout)
        .followRedirects(HttpClient.Redirect.NEVER)
        .proxy(HttpClient.Builder.NO_PROXY)
        .build();
  }

  HttpClient get() {
    if (clock.now() - lookedAt >= LOOK_NANOS) {
      look();
    }
    return http;
  }

  private synchronized void look() {
    if (clock.now() - lookedAt < LOOK_NANOS) {
      return;
    }
    lookedAt = clock.now();
    // Looked at before they are read: what changes in between is seen the next time.
    Optional<List<Stamp>> now = stamps();
    if (now.isPresent() && !now.equals(seen)) {
      seen = now;
      renew();
    }
  }

  /** Half-written files, or a certificate without its key, are met again once they change. */
  private void renew() {
    try {
      http = client();
      LOG.log(System.Logger.Level.INFO, "took over the changed files of this client's certificate");
    } catch (CipherlaneException e) {
      LOG.log(
          System.Logger.Level.WARNING,
          "this client's certificate stays the old one: " + e.getMessage());
    }
  }

  /** Empty while a file is missing, which is no change to act on. */
  private Optional<List<Stamp>> stamps() {
    try {
      return Optional.of(
          List.of(Stamp.of(files.ca()), Stamp.of(files.certificate()), Stamp.of(files.key())));
    } catch (IOException e) {
      return Optional.empty();
    }
  }
}
