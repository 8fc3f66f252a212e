// Errors as the protocol has them.
package dev.cipherlane.conformance;

import com.google.gson.JsonObject;
import dev.cipherlane.CipherlaneException;
import dev.cipherlane.kafka.RecordDecryptionException;
import dev.cipherlane.kafka.RecordRefusedException;
import javax.crypto.AEADBadTagException;

/** A failure with a code of its own. */
final class DriverException extends Exception {
  private static final long serialVersionUID = 1L;

  private final String code;

  DriverException(String code, String message) {
    super(message);
    this.code = code;
  }

  /** Code and message; what is none of the SDK's has the code of the driver. */
  static JsonObject describe(Throwable failure) {
    JsonObject error = new JsonObject();
    error.addProperty("code", code(failure));
    error.addProperty("message", String.valueOf(failure.getMessage()));
    return error;
  }

  /** The code of the SDK's error in a chain of causes, else that of the driver. */
  static String code(Throwable failure) {
    for (Throwable cause = failure; cause != null; cause = cause.getCause()) {
      if (cause instanceof CipherlaneException known) {
        return known.code().code();
      } else if (cause instanceof RecordRefusedException known) {
        return known.code().code();
      } else if (cause instanceof RecordDecryptionException known) {
        return known.code().code();
      } else if (cause instanceof AEADBadTagException) {
        return "authentication-failed";
      } else if (cause instanceof DriverException known) {
        return known.code;
      }
    }
    return "driver";
  }
}
