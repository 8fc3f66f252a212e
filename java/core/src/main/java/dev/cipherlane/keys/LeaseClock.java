package dev.cipherlane.keys;

/** The clock that leases are measured on. Thread-safe. */
@FunctionalInterface
public interface LeaseClock {
  /**
   * Tells the time.
   *
   * @return nanoseconds since some fixed moment; only differences mean something. It runs on
   *     through suspend and does not follow the wall clock back
   */
  long now();

  /**
   * Gives the clock of this machine.
   *
   * @return the same one every time
   */
  static LeaseClock system() {
    return SystemLeaseClock.INSTANCE;
  }
}
