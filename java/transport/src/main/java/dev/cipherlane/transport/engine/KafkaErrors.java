package dev.cipherlane.transport.engine;

import javax.net.ssl.SSLException;

/**
 * The errors that Kafka tells apart by class and text (in {@code maybeProcessHandshakeFailure}):
 * what it takes for a failed authentication is not tried again, everything else is, and a message
 * that is null ends the thread.
 */
final class KafkaErrors {
  private static final String NOT_TLS = "Unrecognized SSL message, plaintext connection?";

  private KafkaErrors() {}

  /** Says the same as Kafka knows to read. */
  static SSLException classified(SSLException error) {
    String message = error.getMessage();
    if (message == null) {
      return with(error, error.getClass().getName());
    }
    // The JDK's since 11 ("Unsupported or unrecognized SSL message"), and Netty's.
    boolean notTls =
        message.contains("unrecognized SSL message")
            || error.getClass().getSimpleName().equals("NotSslRecordException");
    return notTls ? with(error, NOT_TLS) : error;
  }

  private static SSLException with(SSLException error, String message) {
    return new SSLException(message, error);
  }
}
