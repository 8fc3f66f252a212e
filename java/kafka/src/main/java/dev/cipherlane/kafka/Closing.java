package dev.cipherlane.kafka;

import org.apache.kafka.common.KafkaException;

/** Closing several things, of which some may never have been opened. */
final class Closing {
  private Closing() {}

  /**
   * Closes all, in order, even if one fails.
   *
   * @param all some may be null
   */
  static void all(AutoCloseable... all) {
    RuntimeException failure = null;
    for (AutoCloseable one : all) {
      try {
        if (one != null) {
          one.close();
        }
      } catch (Exception e) {
        failure = failure == null ? new KafkaException(e) : failure;
      }
    }
    if (failure != null) {
      throw failure;
    }
  }
}
