package dev.cipherlane;

import dev.cipherlane.cipher.KeyId;
import java.util.Optional;

/**
 * The one exception of the core. It names its code, the topic, where known the kid, and says what
 * to do; never a key, a token or record bytes [CL-ERR-001].
 */
public class CipherlaneException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final ErrorCode code;
  private final String detail;
  private final transient KeyId kid;

  /**
   * Makes one.
   *
   * @param code what happened
   * @param detail what exactly, without secrets
   */
  public CipherlaneException(ErrorCode code, String detail) {
    this(code, null, null, detail, null);
  }

  /**
   * Makes one.
   *
   * @param code what happened
   * @param detail what exactly, without secrets
   * @param cause what lies beneath, or null
   */
  public CipherlaneException(ErrorCode code, String detail, Throwable cause) {
    this(code, null, null, detail, cause);
  }

  /**
   * Makes one.
   *
   * @param code what happened
   * @param topic the topic, or null where there is none
   * @param kid the key id, or null where there is none
   * @param detail what exactly, without secrets
   * @param cause what lies beneath, or null
   */
  public CipherlaneException(
      ErrorCode code, String topic, KeyId kid, String detail, Throwable cause) {
    super(message(code, topic, kid, detail), cause);
    this.code = code;
    this.detail = detail;
    this.kid = kid;
  }

  private static String message(ErrorCode code, String topic, KeyId kid, String detail) {
    StringBuilder message = new StringBuilder(160);
    if (topic != null) {
      message.append("topic ").append(topic).append(": ");
    }
    if (kid != null) {
      message.append("kid ").append(kid).append(": ");
    }
    message.append(code.code()).append(": ").append(detail);
    return message.append(" (").append(code.advice()).append(')').toString();
  }

  /**
   * Gives the code.
   *
   * @return what happened
   */
  public ErrorCode code() {
    return code;
  }

  /**
   * Gives the middle of the message, without topic, kid, code and advice.
   *
   * @return what exactly happened
   */
  public String detail() {
    return detail;
  }

  /**
   * Gives the key id of the record or request.
   *
   * @return empty where there is none, or after this exception was serialized
   */
  public Optional<KeyId> kid() {
    return Optional.ofNullable(kid);
  }
}
