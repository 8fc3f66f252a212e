package dev.cipherlane;

import dev.cipherlane.cipher.EncryptingSession;
import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.envelope.Envelope;
import dev.cipherlane.envelope.Header;
import dev.cipherlane.keys.DataKey;
import dev.cipherlane.keys.EncryptionGrant;
import dev.cipherlane.keys.EncryptionKeys;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import java.util.EnumSet;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;

/**
 * Topic and bytes in, bytes out: what a producer may send in the place of a value. Thread-safe, and
 * without a lock while a lease is fresh.
 *
 * <pre>{@code
 * try (Encryptor encryptor = new Encryptor(Configuration.of(settings))) {
 *   byte[] envelope = encryptor.encrypt("claims", plaintext);
 * }
 * }</pre>
 *
 * <p>All encryptors and decryptors of one configuration share one client of the key service and one
 * cache of keys, so making many costs little.
 */
public final class Encryptor implements AutoCloseable {
  /**
   * A key may be wiped between its lookup and its use, by the end of a lease. Then it is looked up
   * again.
   */
  private static final int MAX_TRIES = 3;

  private final SharedKeys shared;
  private final EncryptionKeys keys;
  private final LeaseClock clock;
  private final int maxPlaintext;
  private final Configuration.Writing writing;
  private final Numbers numbers;
  private final LongAdder encrypted;
  private final AtomicBoolean closed = new AtomicBoolean();

  /**
   * Makes an encryptor that asks the key service.
   *
   * @param configuration the settings
   * @throws CipherlaneException {@code configuration-invalid}
   */
  public Encryptor(Configuration configuration) {
    this(checked(configuration), () -> SharedKeys.of(configuration));
  }

  Encryptor(KeySource source, LeaseClock clock, Configuration configuration) {
    this(checked(configuration), () -> SharedKeys.alone(source, clock, configuration.keys()));
  }

  private Encryptor(Configuration configuration, Supplier<SharedKeys> open) {
    this.shared = open.get();
    this.keys = shared.encryption();
    this.clock = shared.clock();
    this.maxPlaintext = configuration.maxPlaintext();
    this.writing = configuration.writing();
    this.numbers = new Numbers(EnumSet.of(Counter.RECORDS_ENCRYPTED), shared);
    this.encrypted = numbers.adder(Counter.RECORDS_ENCRYPTED);
  }

  /** Before anything is opened: a library that is missing is told now, not at the first record. */
  private static Configuration checked(Configuration configuration) {
    if (configuration.writing().compressed() != TopicPatterns.NONE) {
      try {
        Zstd.load();
      } catch (LinkageError e) {
        throw new CipherlaneException(
            ErrorCode.CONFIGURATION_INVALID,
            "setting cipherlane.compression.topics: needs the library zstd-jni, which is missing",
            e);
      }
    }
    return configuration;
  }

  /**
   * Encrypts a value whose record key is not known: {@link #encrypt(String, RecordKey, byte[])}
   * with {@link RecordKey#UNKNOWN}.
   *
   * @param topic the topic that the record goes to
   * @param value the value; null stays null
   * @return what to send
   * @throws CipherlaneException if it must not be sent
   */
  public byte[] encrypt(String topic, byte[] value) {
    return encrypt(topic, RecordKey.UNKNOWN, value);
  }

  /**
   * Encrypts a value, or passes it on where the policy says so. May wait for the key service, at
   * most {@code cipherlane.keys.deadline.ms}.
   *
   * @param topic the topic that the record goes to
   * @param recordKey the record key, where the caller sees it; bound to the value in the topics of
   *     {@code cipherlane.record.key.topics} [CL-KAF-030]
   * @param value the value, at most {@code cipherlane.max.plaintext.bytes}; null stays null
   *     [CL-ENV-040]
   * @return a new envelope, 60 bytes longer, or shorter where it was compressed; or, in a topic of
   *     mode {@code clear}, the value itself
   * @throws CipherlaneException if it must not be sent; nothing else is ever returned [CL-ENV-044]
   */
  public byte[] encrypt(String topic, RecordKey recordKey, byte[] value) {
    try {
      if (value != null && value.length > maxPlaintext) {
        throw tooLong(topic, null, value.length, maxPlaintext);
      }
      return encryptWithKey(topic, recordKey, value);
    } catch (CipherlaneException e) {
      numbers.failed(e.code());
      throw e;
    }
  }

  private byte[] encryptWithKey(String topic, RecordKey recordKey, byte[] value) {
    for (int attempt = 1; ; attempt++) {
      refuseIfClosed();
      long now = clock.now();
      try {
        byte[] sent = encrypt(topic, recordKey, value, keys.get(topic, now), now);
        numbers.added().sample(now, clock);
        return sent;
      } catch (IllegalStateException e) {
        if (attempt == MAX_TRIES) {
          throw new CipherlaneException(ErrorCode.INTERNAL, topic, null, "the cipher failed", e);
        }
      } catch (CipherlaneException e) {
        if (e.code() != ErrorCode.LEASE_EXPIRED || attempt == MAX_TRIES) {
          throw e;
        }
      }
    }
  }

  private void refuseIfClosed() {
    if (closed.get()) {
      throw new CipherlaneException(ErrorCode.CLOSED, "the encryptor was closed");
    }
  }

  private byte[] encrypt(
      String topic, RecordKey recordKey, byte[] value, EncryptionGrant grant, long now) {
    return switch (grant.mode()) {
      case ENCRYPT -> value == null ? null : encrypt(topic, recordKey, value, grant.key(), now);
      case CLEAR -> clear(topic, value);
      case FORBID ->
          throw new CipherlaneException(
              ErrorCode.TOPIC_FORBIDDEN, topic, null, "nothing may be sent to it", null);
    };
  }

  private byte[] encrypt(String topic, RecordKey recordKey, byte[] value, DataKey key, long now) {
    boolean bound = writing.keyBound().matches(topic);
    if (bound && !recordKey.known()) {
      throw new CipherlaneException(
          ErrorCode.RECORD_KEY_UNAVAILABLE,
          topic,
          null,
          "cipherlane.record.key.topics binds the record key, which is not known here",
          null);
    }
    Optional<byte[]> frame = compressed(topic, value);
    int flags =
        (bound ? Envelope.FLAG_KEY_BOUND : 0) | (frame.isPresent() ? Envelope.FLAG_ZSTD : 0);
    Header header = key.header(flags);
    byte[] aad = bound ? header.aad(recordKey.bytes()) : header.aad();
    byte[] envelope = encrypt(header, aad, frame.orElse(value), key, now, value.length);
    encrypted.increment();
    return envelope;
  }

  private Optional<byte[]> compressed(String topic, byte[] value) {
    return value.length >= writing.compressedFrom() && writing.compressed().matches(topic)
        ? Zstd.compress(value)
        : Optional.empty();
  }

  private static byte[] encrypt(
      Header header, byte[] aad, byte[] plaintext, DataKey key, long now, int reported) {
    byte[] envelope = header.newEnvelope(plaintext.length);
    EncryptingSession session = key.session(now);
    while (!session.tryEncrypt(aad, plaintext, envelope, Envelope.NONCE_OFFSET, now)) {
      session = key.sessionAfter(session, now);
    }
    session.addBytes(reported);
    return envelope;
  }

  static CipherlaneException tooLong(String topic, KeyId kid, int size, int max) {
    return new CipherlaneException(
        ErrorCode.PLAINTEXT_TOO_LONG,
        topic,
        kid,
        size + " bytes; cipherlane.max.plaintext.bytes is " + max,
        null);
  }

  private static byte[] clear(String topic, byte[] value) {
    if (value != null && Envelope.isEnvelope(value)) {
      throw new CipherlaneException(
          ErrorCode.AMBIGUOUS_PLAINTEXT,
          topic,
          null,
          "the topic is not encrypted, and the value starts like an envelope",
          null);
    }
    return value;
  }

  /**
   * Gives what is to be reported of this encryptor.
   *
   * @return the same one every time
   */
  public Numbers numbers() {
    return numbers;
  }

  /**
   * Ends all use of this encryptor. The last of a configuration to close wipes all keys, and before
   * that reports what was encrypted, waiting a second at most [CL-KEY-017]. May be called more than
   * once.
   */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      shared.leave();
    }
  }
}
