package dev.cipherlane.identity;

import dev.cipherlane.CipherlaneException;

/** Who this process is, to the key service and to Kafka ({@code spec/identity.md}). Thread-safe. */
public interface Identity extends AutoCloseable {
  /**
   * Gives the certificate and key to use now, and what to trust. The same object until they change.
   *
   * @return never null
   * @throws CipherlaneException {@code key-service-unavailable} if the last certificate has ended,
   *     or the first is not there yet [CL-IDN-036]
   */
  Credentials credentials();

  /**
   * Tells how long the certificate holds.
   *
   * @return seconds, negative when it has ended; NaN while there is none
   */
  double secondsLeft();

  /** Ends renewals. Calling it again does nothing. */
  @Override
  void close();
}
