package dev.cipherlane.identity;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.keys.LeaseClock;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/**
 * What PEM files hold, read again when they have changed [CL-KEY-016]: certificates are
 * short-lived, and whoever renews them replaces the files. Thread-safe.
 */
public final class PemIdentity implements Identity {
  private static final System.Logger LOG = System.getLogger(PemIdentity.class.getName());
  private static final double NANOS_PER_SECOND = 1e9;

  /** Nanoseconds between two looks at the files. */
  public static final long LOOK_NANOS = TimeUnit.SECONDS.toNanos(30);

  /** What changes when a file is written or replaced, also through a link. */
  private record Stamp(Object modified, long size, Object file) {
    static Stamp of(Path path) throws IOException {
      var attributes = Files.readAttributes(path, BasicFileAttributes.class);
      return new Stamp(attributes.lastModifiedTime(), attributes.size(), attributes.fileKey());
    }
  }

  private final TlsFiles files;
  private final LeaseClock clock;
  private volatile Credentials credentials;
  private volatile long lookedAt;
  private Optional<List<Stamp>> seen;

  /**
   * Reads the files for the first time.
   *
   * @param files certificates and key
   * @param clock tells when to look at them again
   * @throws CipherlaneException {@code configuration-invalid} if a file cannot be used
   */
  public PemIdentity(TlsFiles files, LeaseClock clock) {
    this.files = files;
    this.clock = clock;
    this.lookedAt = clock.now();
    this.seen = stamps();
    this.credentials = PemFiles.credentials(files, clock);
  }

  @Override
  public Credentials credentials() {
    if (clock.now() - lookedAt >= LOOK_NANOS) {
      look();
    }
    return credentials;
  }

  @Override
  public double secondsLeft() {
    return (credentials.endsAt() - clock.now()) / NANOS_PER_SECOND;
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
      readAgain();
    }
  }

  /** Half-written files, or a certificate without its key, are met again once they change. */
  private void readAgain() {
    try {
      credentials = PemFiles.credentials(files, clock);
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

  @Override
  public void close() {
    // Nothing runs.
  }
}
