package dev.cipherlane;

import dev.cipherlane.cipher.EncryptingSession;
import dev.cipherlane.envelope.Envelope;
import dev.cipherlane.keys.DataKey;
import dev.cipherlane.keys.EncryptionGrant;
import dev.cipherlane.keys.EncryptionKeys;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;

/**
 * Topic and bytes in, bytes out: what a producer may send in the place of a value. Thread-safe, and
 * without a lock while a lease is fresh.
 */
public final class Encryptor implements AutoCloseable {
  /**
   * A key may be wiped between its lookup and its use, by the end of a lease. Then it is looked up
   * again.
   */
  private static final int MAX_TRIES = 3;

  private final EncryptionKeys keys;
  private final LeaseClock clock;
  private final int maxPlaintext;

  /**
   * Makes an encryptor that asks the key service.
   *
   * @param configuration the settings
   * @throws CipherlaneException {@code configuration-invalid}
   */
  public Encryptor(Configuration configuration) {
    this(KeySources.of(configuration), LeaseClock.system(), configuration);
  }

  Encryptor(KeySource source, LeaseClock clock, Configuration configuration) {
    this.keys = new EncryptionKeys(source, clock, configuration.keys());
    this.clock = clock;
    this.maxPlaintext = configuration.maxPlaintext();
  }

  /**
   * Encrypts a value, or passes it on where the policy says so. May wait for the key service, at
   * most {@code cipherlane.keys.deadline.ms}.
   *
   * @param topic the topic that the record goes to
   * @param value the value; null stays null [CL-ENV-040]
   * @return a new envelope, 60 bytes longer; or, in a topic of mode {@code clear}, the value itself
   * @throws CipherlaneException if it must not be sent; nothing else is ever returned [CL-ENV-044]
   */
  public byte[] encrypt(String topic, byte[] value) {
    if (value != null && value.length > maxPlaintext) {
      throw tooLong(topic, value.length, maxPlaintext);
    }
    for (int attempt = 1; ; attempt++) {
      long now = clock.now();
      try {
        return encrypt(topic, value, keys.get(topic, now), now);
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

  private byte[] encrypt(String topic, byte[] value, EncryptionGrant grant, long now) {
    return switch (grant.mode()) {
      case ENCRYPT -> value == null ? null : encrypt(value, grant.key(), now);
      case CLEAR -> clear(topic, value);
      case FORBID ->
          throw new CipherlaneException(
              ErrorCode.TOPIC_FORBIDDEN, topic, null, "nothing may be sent to it", null);
    };
  }

  private static byte[] encrypt(byte[] plaintext, DataKey key, long now) {
    byte[] envelope = key.header().newEnvelope(plaintext.length);
    byte[] aad = key.header().aad();
    EncryptingSession session = key.session(now);
    while (!session.tryEncrypt(aad, plaintext, envelope, Envelope.NONCE_OFFSET, now)) {
      session = key.sessionAfter(session, now);
    }
    return envelope;
  }

  static CipherlaneException tooLong(String topic, int size, int max) {
    return new CipherlaneException(
        ErrorCode.PLAINTEXT_TOO_LONG,
        topic,
        null,
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

  /** Wipes all keys. What is being encrypted ends with an error. */
  @Override
  public void close() {
    keys.close();
  }
}
