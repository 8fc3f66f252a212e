package dev.cipherlane.transport;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.identity.Credentials;
import dev.cipherlane.transport.engine.TlsEngines;
import java.util.function.Function;

/**
 * What makes engines for the certificate in use: another one for each, so that no session outlives
 * the certificate that it was made with. Thread-safe.
 */
final class CurrentEngines implements AutoCloseable {
  /**
   * What makes engines for one certificate.
   *
   * @param credentials the certificate
   * @param engines makes the engines
   * @param end to be run once when no more are to be made
   */
  record Made(Credentials credentials, TlsEngines engines, Runnable end) {}

  private final Function<Credentials, Made> source;
  private volatile Made made;
  private boolean closed;

  CurrentEngines(Function<Credentials, Made> source) {
    this.source = source;
  }

  /** Gives what makes engines for this certificate, the newest. */
  TlsEngines of(Credentials now) {
    Made last = made;
    return (last != null && last.credentials() == now ? last : renewed(now)).engines();
  }

  private synchronized Made renewed(Credentials now) {
    if (closed) {
      throw new CipherlaneException(ErrorCode.CLOSED, "the engine factory was closed");
    }
    if (made == null || made.credentials() != now) {
      Made next = source.apply(now);
      end();
      made = next;
    }
    return made;
  }

  private void end() {
    if (made != null) {
      made.end().run();
      made = null;
    }
  }

  @Override
  public synchronized void close() {
    closed = true;
    end();
  }
}
