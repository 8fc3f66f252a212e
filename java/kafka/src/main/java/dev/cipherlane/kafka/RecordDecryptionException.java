package dev.cipherlane.kafka;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.cipher.KeyId;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.errors.SerializationException;

/**
 * What reading a value throws that cannot be decrypted [CL-KAF-010]. Names the topic, the kid where
 * there is one, the code, and, but for deserializers, which do not see them, partition and offset.
 */
public final class RecordDecryptionException extends SerializationException {
  private static final long serialVersionUID = 1L;

  private final ErrorCode code;
  private final transient KeyId kid;

  private RecordDecryptionException(String place, ErrorCode code, Throwable cause) {
    super("%s: %s: %s (%s)".formatted(place, code.code(), detail(cause), code.advice()), cause);
    this.code = code;
    this.kid = kid(cause).orElse(null);
  }

  private RecordDecryptionException(RecordDecryptionException first, String more) {
    super(first.getMessage() + more, first.getCause());
    this.code = first.code;
    this.kid = first.kid;
  }

  /** The same, which says also that the dead-letter topic did not take the record [CL-KAF-023]. */
  RecordDecryptionException withDeadLetterFailure(String topic, Throwable failure) {
    String why =
        failure.getMessage() == null ? failure.getClass().getSimpleName() : failure.getMessage();
    RecordDecryptionException both =
        new RecordDecryptionException(
            this, "; and dead-letter topic %s did not take it: %s".formatted(topic, why));
    both.addSuppressed(failure);
    return both;
  }

  private static String detail(Throwable cause) {
    return cause instanceof CipherlaneException known
        ? known.detail()
        : cause.getClass().getSimpleName();
  }

  private static Optional<KeyId> kid(Throwable cause) {
    return cause instanceof CipherlaneException known ? known.kid() : Optional.empty();
  }

  private static ErrorCode code(Throwable cause) {
    return cause instanceof CipherlaneException known ? known.code() : ErrorCode.INTERNAL;
  }

  static RecordDecryptionException of(ConsumerRecord<?, ?> record, Throwable cause) {
    String place =
        "topic %s, partition %d, offset %d%s"
            .formatted(record.topic(), record.partition(), record.offset(), kidText(cause));
    return new RecordDecryptionException(place, code(cause), cause);
  }

  static RecordDecryptionException of(String topic, Throwable cause) {
    return new RecordDecryptionException("topic " + topic + kidText(cause), code(cause), cause);
  }

  private static String kidText(Throwable cause) {
    return kid(cause).map(kid -> ", kid " + kid).orElse("");
  }

  /**
   * Gives the code.
   *
   * @return what happened; {@link ErrorCode#retriable} says whether reading it again later may help
   */
  public ErrorCode code() {
    return code;
  }

  /**
   * Gives the key id that the record names.
   *
   * @return empty where there is none, or after this exception was serialized
   */
  public Optional<KeyId> kid() {
    return Optional.ofNullable(kid);
  }
}
