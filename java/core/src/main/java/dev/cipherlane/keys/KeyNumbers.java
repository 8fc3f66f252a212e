package dev.cipherlane.keys;

/** What the keys of one configuration report of themselves. Thread-safe. */
public interface KeyNumbers {
  /**
   * Counts calls to the key service.
   *
   * @return so far
   */
  long requests();

  /**
   * Counts calls to the key service that ended in an error.
   *
   * @return so far; refusals and outages alike
   */
  long failures();

  /**
   * Counts data keys.
   *
   * @return held now
   */
  long cached();

  /**
   * Looks for the lease that ends first.
   *
   * @return seconds until then; NaN while there is none
   */
  double leaseSecondsLeft();

  /**
   * Looks at the certificate with which the key service is called.
   *
   * @return seconds until its end, negative after it; NaN while there is none
   */
  double certificateSecondsLeft();
}
