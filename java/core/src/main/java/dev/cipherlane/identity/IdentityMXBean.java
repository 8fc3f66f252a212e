package dev.cipherlane.identity;

/**
 * An identity as JMX shows it: {@code dev.cipherlane:type=identity,id=...}, one for each that this
 * Java machine has, however many clients share it.
 */
public interface IdentityMXBean {
  /**
   * Tells whose certificate it is.
   *
   * @return the principal; empty while there is no certificate that holds
   */
  String getPrincipal();

  /**
   * Tells {@code certificate-seconds-left} ({@code spec/kafka.md}, "Numbers").
   *
   * @return seconds, negative when it has ended; NaN while there is none
   */
  double getCertificateSecondsLeft();
}
