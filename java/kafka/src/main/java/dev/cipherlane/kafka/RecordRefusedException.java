package dev.cipherlane.kafka;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import org.apache.kafka.common.errors.SerializationException;

/**
 * What {@code send()} throws for a record that was not sent because it could not be encrypted
 * [CL-KAF-001].
 */
public final class RecordRefusedException extends SerializationException {
  private static final long serialVersionUID = 1L;

  private final ErrorCode code;
  private final String topic;

  private RecordRefusedException(ErrorCode code, String topic, String detail, Throwable cause) {
    super(
        "the record for topic %s was not sent: %s: %s (%s)"
            .formatted(topic, code.code(), detail, code.advice()),
        cause);
    this.code = code;
    this.topic = topic;
  }

  /** Whatever went wrong. */
  static RecordRefusedException of(String topic, Throwable cause) {
    if (cause instanceof RecordRefusedException already) {
      return already;
    }
    if (cause instanceof CipherlaneException known) {
      return new RecordRefusedException(known.code(), topic, known.detail(), known);
    }
    return new RecordRefusedException(
        ErrorCode.INTERNAL, topic, cause.getClass().getSimpleName(), cause);
  }

  /**
   * Gives the code.
   *
   * @return what happened; {@link ErrorCode#retriable} says whether trying again may help
   */
  public ErrorCode code() {
    return code;
  }

  /**
   * Gives the topic.
   *
   * @return where the record was to go
   */
  public String topic() {
    return topic;
  }
}
