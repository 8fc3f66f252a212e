package dev.cipherlane.keys;

import java.util.concurrent.TimeUnit;

/**
 * The time of a lease, on the {@link LeaseClock}, in nanoseconds.
 *
 * @param refreshAt from when on it is renewed
 * @param expiresAt when it ends
 */
public record Term(long refreshAt, long expiresAt) {
  /** Longest lease, in seconds: a week ({@code spec/limits.md}). */
  public static final long MAX_SECONDS = 604_800;

  /**
   * Reckons from when the request was sent [CL-KEY-005].
   *
   * @param sentAt time of the request, nanoseconds of the lease clock
   * @param refreshIn seconds, 1 to {@code expiresIn}
   * @param expiresIn seconds, 1 to {@value #MAX_SECONDS}
   * @return the time of the lease
   * @throws IllegalArgumentException if one is out of range
   */
  public static Term of(long sentAt, long refreshIn, long expiresIn) {
    if (refreshIn < 1 || expiresIn > MAX_SECONDS || refreshIn > expiresIn) {
      throw new IllegalArgumentException(
          "refresh_in " + refreshIn + ", expires_in " + expiresIn + ": out of range");
    }
    return new Term(
        sentAt + TimeUnit.SECONDS.toNanos(refreshIn), sentAt + TimeUnit.SECONDS.toNanos(expiresIn));
  }

  /**
   * Renews earlier, so that clients that started together do not go on asking together.
   *
   * @param sentAt time of the request, nanoseconds of the lease clock
   * @param share by which share of the time until then, 0 to 1
   * @return the same lease
   */
  public Term renewedEarlier(long sentAt, double share) {
    return new Term(refreshAt - (long) ((refreshAt - sentAt) * share), expiresAt);
  }
}
