package dev.cipherlane.transport;

import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.transport.engine.FrameTracker;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.ThreadLocalRandom;

/**
 * When a connection ends, so that it does not outlive the certificates it was made with
 * [CL-IDN-042]. In the last part of their life it ends where it costs nothing, when no request
 * waits for its response; in the last half of that part between two frames; and at their end
 * wherever it is. A client begins earlier than a broker, because what a broker hangs up on has to
 * be sent again. Not thread-safe.
 */
final class ConnectionEnd {
  private static final double CLIENT_SHARE = 0.2;
  private static final double BROKER_SHARE = 0.1;
  private static final double SPREAD = 0.1; // so that connections made together do not end together

  private final LeaseClock clock;
  private final long madeAt;
  private final double share;
  private long from; // nanoseconds of the clock, as the other two
  private long betweenFrames;
  private long end;

  /**
   * Begins with this side's certificate.
   *
   * @param clock tells the time
   * @param end when this side's certificate ends, in nanoseconds of the clock
   * @param client whether this side opened the connection
   */
  ConnectionEnd(LeaseClock clock, long end, boolean client) {
    this.clock = clock;
    this.madeAt = clock.now();
    this.share =
        (client ? CLIENT_SHARE : BROKER_SHARE) + ThreadLocalRandom.current().nextDouble(SPREAD);
    endAt(end);
  }

  private void endAt(long at) {
    end = at;
    long window = (long) ((end - madeAt) * share);
    from = end - window;
    betweenFrames = end - window / 2;
  }

  /** Takes the peer's certificate into account. */
  void peer(X509Certificate certificate) {
    Duration left = Duration.between(Instant.now(), certificate.getNotAfter().toInstant());
    endAt(Math.min(end, clock.now() + left.toMillis() * 1_000_000));
  }

  /**
   * Tells whether the connection is to end now.
   *
   * @param sent frames of this side
   * @param received frames of the other
   */
  boolean now(FrameTracker sent, FrameTracker received) {
    long now = clock.now();
    if (now < from) {
      return false;
    }
    boolean boundary = sent.atBoundary() && received.atBoundary();
    boolean answered = sent.frames() == received.frames();
    return now >= end || (boundary && (answered || now >= betweenFrames));
  }
}
