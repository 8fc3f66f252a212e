package dev.cipherlane;

import java.util.Optional;

/**
 * Every error of {@code spec/errors.md}: its code, its layer, whether it will pass, and what to do
 * about it.
 */
public enum ErrorCode {
  /** A setting is missing, unknown, malformed, or a combination that would not be safe. */
  CONFIGURATION_INVALID(Layer.CONFIGURATION, "configuration-invalid", "correct the setting"),
  /** The value is not bytes where bytes are needed. */
  VALUE_TYPE(
      Layer.INPUT,
      "value-type",
      "use a byte[] client, or EncryptingSerializer around your own serializer"),
  /** Not a Kafka topic name. */
  TOPIC_INVALID(Layer.INPUT, "topic-invalid", "correct the topic's name"),
  /** Over {@code cipherlane.max.plaintext.bytes}. */
  PLAINTEXT_TOO_LONG(
      Layer.INPUT,
      "plaintext-too-long",
      "raise cipherlane.max.plaintext.bytes on both sides, or send less"),
  /** A value for a {@code clear} topic starts with the envelope's magic. */
  AMBIGUOUS_PLAINTEXT(Layer.INPUT, "ambiguous-plaintext", "encrypt the topic"),
  /** Starts like an envelope and ends too early. */
  ENVELOPE_TOO_SHORT(Layer.PARSE, "envelope-too-short", "the record was cut: look at who wrote it"),
  /** Written by a newer version. */
  UNSUPPORTED_VERSION(Layer.PARSE, "unsupported-version", "upgrade this client"),
  /** Flags that this version does not know. */
  UNSUPPORTED_FLAGS(Layer.PARSE, "unsupported-flags", "upgrade this client"),
  /** The envelope binds the record key, which this client does not see. */
  RECORD_KEY_UNAVAILABLE(Layer.PARSE, "record-key-unavailable", "use the interceptor"),
  /** No policy rule names the topic. */
  TOPIC_UNKNOWN(
      Layer.POLICY, "topic-unknown", "add a rule for the topic to the key service's policy"),
  /** The policy says {@code forbid}. */
  TOPIC_FORBIDDEN(Layer.POLICY, "topic-forbidden", "the key service's policy forbids this topic"),
  /** The principal has no grant for this action on this topic. */
  NOT_AUTHORIZED(Layer.POLICY, "not-authorized", "add a grant to the key service's policy"),
  /** The key belongs to a scope that does not cover this topic. */
  SCOPE_MISMATCH(
      Layer.POLICY,
      "scope-mismatch",
      "find out who moved the record, or map the topic to the scope"),
  /** The record is not encrypted and the topic's policy takes no plaintext. */
  PLAINTEXT_REJECTED(
      Layer.POLICY,
      "plaintext-rejected",
      "find out who writes plaintext; the policy's `plaintext: accept` is for migrations"),
  /** The key service has no such key. */
  KEY_UNKNOWN(Layer.KEY_ID, "key-unknown", "restore the key store, or the record is foreign"),
  /** The key was destroyed on purpose. */
  KEY_DESTROYED(Layer.KEY_ID, "key-destroyed", "the record is unreadable for good"),
  /** The key service gave something that is not a 32-byte key. */
  KEY_MALFORMED(Layer.KEY_ID, "key-malformed", "look at the key service"),
  /** The key given does not hash to the kid. */
  KEY_ID_MISMATCH(
      Layer.KEY_ID, "key-id-mismatch", "look at the key service: someone may be tampering"),
  /** The tag does not fit. */
  AUTHENTICATION_FAILED(
      Layer.DECRYPTION, "authentication-failed", "the record was tampered with or moved"),
  /** Authentic, but its content is not one zstd frame. */
  DECOMPRESSION_FAILED(Layer.DECRYPTION, "decompression-failed", "look at who wrote the record"),
  /** No valid client certificate. */
  UNAUTHENTICATED(
      Layer.KEY_SERVICE, "unauthenticated", "check the client's certificate, the CA and the clock"),
  /** The key service refused the request as malformed. */
  REQUEST_INVALID(
      Layer.KEY_SERVICE,
      "request-invalid",
      "check that the versions of client and key service fit"),
  /** The request was over the limit. */
  REQUEST_TOO_LARGE(
      Layer.KEY_SERVICE,
      "request-too-large",
      "check that the versions of client and key service fit"),
  /** No such path or method. */
  NOT_FOUND(Layer.KEY_SERVICE, "not-found", "check cipherlane.keyservice.urls"),
  /** No connection, time out, 429 or 5xx, from every address. */
  KEY_SERVICE_UNAVAILABLE(
      Layer.KEY_SERVICE,
      "key-service-unavailable",
      "check that the key service runs, the network and the certificates",
      true),
  /** An answer that does not follow the specification. */
  KEY_SERVICE_BAD_ANSWER(
      Layer.KEY_SERVICE,
      "key-service-bad-answer",
      "check that the address is really the key service's"),
  /** The key service failed inside. */
  KEY_SERVICE_INTERNAL(Layer.KEY_SERVICE, "internal", "look into the key service's log", true),
  /** The key service could not write its audit log and therefore refused. */
  AUDIT_UNAVAILABLE(Layer.KEY_SERVICE, "audit-unavailable", "look at the key service's disk", true),
  /** The lease ended and could not be renewed. */
  LEASE_EXPIRED(Layer.KEY_SERVICE, "lease-expired", "check that the key service runs", true),
  /** The encryptor or decryptor was closed. */
  CLOSED(Layer.CLIENT, "closed", "make a new one"),
  /** An unexpected failure inside the SDK. */
  INTERNAL(Layer.CLIENT, "internal", "report it, with the cause");

  private final Layer layer;
  private final String code;
  private final String advice;
  private final boolean retriable;

  ErrorCode(Layer layer, String code, String advice) {
    this(layer, code, advice, false);
  }

  ErrorCode(Layer layer, String code, String advice, boolean retriable) {
    this.layer = layer;
    this.code = code;
    this.advice = advice;
    this.retriable = retriable;
  }

  /**
   * Finds what the key service means by a code of its answers.
   *
   * @param code for example {@code not-authorized}
   * @return empty for a code that is not in the specification, or that only a client uses
   */
  public static Optional<ErrorCode> ofKeyService(String code) {
    for (ErrorCode error : values()) {
      if (error.code.equals(code) && error.layer != Layer.CLIENT) {
        return Optional.of(error);
      }
    }
    return Optional.empty();
  }

  /**
   * Tells the layer.
   *
   * @return where the error belongs
   */
  public Layer layer() {
    return layer;
  }

  /**
   * Gives the word that is the same in every language, in vectors and in metrics.
   *
   * @return for example {@code key-id-mismatch}
   */
  public String code() {
    return code;
  }

  /**
   * Says what to do.
   *
   * @return half a sentence
   */
  public String advice() {
    return advice;
  }

  /**
   * Tells errors of one record, which will never be readable, from those that concern every record
   * of a topic or will pass [CL-KAF-020]: only the former are subject to {@link FailureAction}.
   *
   * @return whether the record alone is at fault
   */
  public boolean concernsRecord() {
    return switch (this) {
      case PLAINTEXT_TOO_LONG, PLAINTEXT_REJECTED, SCOPE_MISMATCH -> true;
      default -> layer == Layer.PARSE || layer == Layer.KEY_ID || layer == Layer.DECRYPTION;
    };
  }

  /**
   * Tells errors that will pass from those that will not [CL-ERR-004].
   *
   * @return whether trying again later may help
   */
  public boolean retriable() {
    return retriable;
  }
}
