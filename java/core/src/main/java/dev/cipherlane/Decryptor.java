package dev.cipherlane;

import dev.cipherlane.cipher.DerivedKeys;
import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.envelope.Envelope;
import dev.cipherlane.envelope.Header;
import dev.cipherlane.keys.DataKey;
import dev.cipherlane.keys.DecryptionKeys;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import java.time.Duration;
import java.util.Collection;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.LongAdder;
import javax.crypto.AEADBadTagException;

/**
 * Topic and bytes in, bytes out: what a consumer may see in the place of a record value.
 * Thread-safe.
 *
 * <pre>{@code
 * try (Decryptor decryptor = new Decryptor(Configuration.of(settings))) {
 *   decryptor.prepare("claims", values); // one request for all keys of a batch
 *   long deadline = decryptor.deadline();
 *   for (byte[] value : values) {
 *     byte[] plaintext = decryptor.decrypt("claims", RecordKey.UNKNOWN, value, deadline);
 *   }
 * }
 * }</pre>
 *
 * <p>All encryptors and decryptors of one configuration share one client of the key service and one
 * cache of keys, so making many costs little.
 */
public final class Decryptor implements AutoCloseable {
  private static final int MAX_TRIES = 3;

  private final SharedKeys shared;
  private final DerivedKeys.Reader derivedKeys;
  private final DecryptionKeys keys;
  private final DecryptionKeys.Reader heldKeys;
  private final LeaseClock clock;
  private final Duration deadline;
  private final int maxPlaintext;
  private final Numbers numbers;
  private final LongAdder decrypted;
  private final AtomicBoolean closed = new AtomicBoolean();
  // The last one that was checked; two threads may check the same one twice.
  private String validTopic;

  /**
   * Makes a decryptor that asks the key service.
   *
   * @param configuration the settings
   * @throws CipherlaneException {@code configuration-invalid}
   */
  public Decryptor(Configuration configuration) {
    this(SharedKeys.of(configuration), configuration);
  }

  Decryptor(KeySource source, LeaseClock clock, Configuration configuration) {
    this(SharedKeys.alone(source, clock, configuration.keys()), configuration);
  }

  private Decryptor(SharedKeys shared, Configuration configuration) {
    this.shared = shared;
    this.derivedKeys = shared.derivedKeys().reader();
    this.keys = shared.decryption();
    this.heldKeys = keys.reader();
    this.clock = shared.clock();
    this.deadline = configuration.keys().deadline();
    this.maxPlaintext = configuration.maxPlaintext();
    this.numbers =
        new Numbers(
            EnumSet.of(
                Counter.RECORDS_DECRYPTED,
                Counter.PLAINTEXT_ACCEPTED,
                Counter.SKIPPED,
                Counter.DEAD_LETTERED,
                Counter.MARKED),
            shared);
    this.decrypted = numbers.adder(Counter.RECORDS_DECRYPTED);
  }

  /**
   * Says until when a call may wait that begins now [CL-KEY-011].
   *
   * @return nanoseconds of {@link System#nanoTime}, to be given to all calls for one batch
   */
  public long deadline() {
    return System.nanoTime() + deadline.toNanos();
  }

  /**
   * Asks for all keys that a batch of values needs, in as few calls as possible, and does not wait.
   * What is not an envelope, or a broken one, is passed over: {@link #decrypt} will say so.
   *
   * @param topic the topic that they were read from
   * @param values record values; some may be null
   */
  public void prepare(String topic, Collection<byte[]> values) {
    if (!TopicName.valid(topic)) {
      return;
    }
    Set<KeyId> kids = new HashSet<>();
    boolean plaintext = false;
    for (byte[] value : values) {
      if (value == null) {
        continue;
      }
      if (!Envelope.isEnvelope(value)) {
        plaintext = true;
      } else if (Envelope.wellFormed(value)) {
        kids.add(Envelope.parse(value).kid());
      }
    }
    keys.prepare(topic, kids, plaintext);
  }

  /**
   * Decrypts a value, or passes plaintext on where the policy accepts it.
   *
   * @param topic the topic that the record was read from
   * @param recordKey the record key, where the caller sees it
   * @param value the record value; null stays null [CL-ENV-001]
   * @param deadline until when to wait for keys, from {@link #deadline()}
   * @return the plaintext: a new array, or {@code value} itself if it is plaintext
   * @throws CipherlaneException if it cannot be shown; null, an empty value or the envelope are
   *     never returned instead [CL-ENV-012]
   */
  public byte[] decrypt(String topic, RecordKey recordKey, byte[] value, long deadline) {
    try {
      return value == null ? null : decryptValue(topic, recordKey, value, deadline);
    } catch (CipherlaneException e) {
      numbers.failed(e.code());
      throw e;
    }
  }

  private byte[] decryptValue(String topic, RecordKey recordKey, byte[] value, long deadline) {
    if (closed.get()) {
      throw new CipherlaneException(ErrorCode.CLOSED, "the decryptor was closed");
    }
    checkTopic(topic);
    return Envelope.isEnvelope(value)
        ? decryptEnvelope(topic, recordKey, value, deadline)
        : plaintext(topic, value, deadline);
  }

  private void checkTopic(String topic) {
    if (!topic.equals(validTopic)) {
      TopicName.check(topic);
      validTopic = topic;
    }
  }

  private byte[] plaintext(String topic, byte[] value, long deadline) {
    if (!keys.plaintextAccepted(topic, deadline)) {
      throw new CipherlaneException(
          ErrorCode.PLAINTEXT_REJECTED, topic, null, "the record is not encrypted", null);
    }
    numbers.count(Counter.PLAINTEXT_ACCEPTED);
    return value;
  }

  private byte[] decryptEnvelope(String topic, RecordKey recordKey, byte[] value, long deadline) {
    Envelope envelope = Envelope.parse(value);
    if (!envelope.compressed() && envelope.plaintextSize() > maxPlaintext) {
      throw Encryptor.tooLong(topic, envelope.kid(), envelope.plaintextSize(), maxPlaintext);
    }
    if (envelope.keyBound() && !recordKey.known()) {
      throw new CipherlaneException(
          ErrorCode.RECORD_KEY_UNAVAILABLE,
          topic,
          envelope.kid(),
          "the record key is bound, and not to be seen here",
          null);
    }
    long began = clock.now();
    byte[] plaintext = decrypt(topic, envelope, recordKey, value, began, deadline);
    if (envelope.compressed()) {
      plaintext = decompress(topic, envelope.kid(), plaintext);
    }
    numbers.added().sample(began, clock);
    decrypted.increment();
    return plaintext;
  }

  private byte[] decompress(String topic, KeyId kid, byte[] frame) {
    try {
      return Zstd.decompress(frame, maxPlaintext);
    } catch (CipherlaneException e) {
      throw new CipherlaneException(e.code(), topic, kid, e.detail(), e.getCause());
    } catch (LinkageError e) {
      throw new CipherlaneException(
          ErrorCode.DECOMPRESSION_FAILED,
          topic,
          kid,
          "the library zstd-jni, which kafka-clients brings, is missing",
          e);
    }
  }

  private byte[] decrypt(
      String topic,
      Envelope envelope,
      RecordKey recordKey,
      byte[] value,
      long began,
      long deadline) {
    long now = began;
    for (int attempt = 1; ; attempt++) {
      try {
        DataKey key = heldKeys.get(topic, value, Envelope.KID_OFFSET, now, deadline);
        byte[] aad = aad(envelope, key, recordKey);
        return derivedKeys.decrypt(key.kid(), key.secret(), aad, value, Envelope.NONCE_OFFSET);
      } catch (AEADBadTagException e) {
        throw new CipherlaneException(
            ErrorCode.AUTHENTICATION_FAILED, topic, envelope.kid(), "the tag does not fit", null);
      } catch (IllegalStateException e) {
        if (attempt == MAX_TRIES) {
          throw new CipherlaneException(
              ErrorCode.INTERNAL, topic, envelope.kid(), "the cipher failed", e);
        }
      } catch (CipherlaneException e) {
        if (e.code() != ErrorCode.LEASE_EXPIRED || attempt == MAX_TRIES) {
          throw e;
        }
      }
      now = clock.now();
    }
  }

  private static byte[] aad(Envelope envelope, DataKey key, RecordKey recordKey) {
    Header header = key.header(envelope.flags());
    return envelope.keyBound() ? header.aad(recordKey.bytes()) : header.aad();
  }

  /**
   * Gives what is to be reported of this decryptor.
   *
   * @return the same one every time
   */
  public Numbers numbers() {
    return numbers;
  }

  /**
   * Ends all use of this decryptor. The last of a configuration to close wipes all keys; what is
   * being decrypted then ends with an error. May be called more than once.
   */
  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      shared.leave();
    }
  }
}
