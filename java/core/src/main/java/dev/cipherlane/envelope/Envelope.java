package dev.cipherlane.envelope;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.cipher.KeyId;

/**
 * The one parser of envelopes: a checked view of a record value as {@code spec/envelope.md} lays it
 * out. Holds no copy; the value must not change while it is in use.
 */
public final class Envelope {
  /** First byte of the magic. */
  static final byte MAGIC_0 = (byte) 0xC1;

  /** Second byte of the magic. */
  static final byte MAGIC_1 = (byte) 0x9E;

  static final byte VERSION = 1;
  static final int VERSION_OFFSET = 2;
  static final int FLAGS_OFFSET = 3;

  /** Where the key id begins. */
  public static final int KID_OFFSET = 4;

  /** Where the nonce begins, which is also the size of what stands before it, in bytes. */
  public static final int NONCE_OFFSET = 20;

  /** Bytes by which an envelope is longer than what it encrypts. */
  public static final int OVERHEAD = 60;

  /** Flags: the plaintext is one zstd frame. */
  public static final int FLAG_ZSTD = 1;

  /** Flags: the record key is part of the additional data. */
  public static final int FLAG_KEY_BOUND = 4;

  private static final int KNOWN_FLAGS = FLAG_ZSTD | FLAG_KEY_BOUND;
  private static final int MAGIC_SIZE = 2;

  private final byte[] bytes;

  private Envelope(byte[] bytes) {
    this.bytes = bytes;
  }

  /**
   * Tells envelopes from plaintext by the magic alone [CL-ENV-002] [CL-ENV-003].
   *
   * @param value a record value
   * @return whether it must be treated as an envelope
   */
  public static boolean isEnvelope(byte[] value) {
    return value.length >= MAGIC_SIZE && value[0] == MAGIC_0 && value[1] == MAGIC_1;
  }

  /**
   * Checks steps 4 to 7 of reading.
   *
   * @param value a record value that {@link #isEnvelope}
   * @return the view
   * @throws CipherlaneException {@code envelope-too-short}, {@code unsupported-version} or {@code
   *     unsupported-flags} [CL-ENV-004] to [CL-ENV-007]
   */
  public static Envelope parse(byte[] value) {
    if (value.length == MAGIC_SIZE) {
      throw tooShort(value);
    }
    if (value[VERSION_OFFSET] != VERSION) {
      throw new CipherlaneException(
          ErrorCode.UNSUPPORTED_VERSION, "version " + (value[VERSION_OFFSET] & 0xFF) + ", not 1");
    }
    if (value.length < OVERHEAD) {
      throw tooShort(value);
    }
    if ((value[FLAGS_OFFSET] & ~KNOWN_FLAGS) != 0) {
      throw new CipherlaneException(
          ErrorCode.UNSUPPORTED_FLAGS,
          "flags %02x, of which 05 are known".formatted(value[FLAGS_OFFSET] & 0xFF));
    }
    return new Envelope(value);
  }

  /**
   * Tells whether {@link #parse} would succeed, without the cost of an exception.
   *
   * @param value a record value that {@link #isEnvelope}
   * @return whether it is well-formed
   */
  public static boolean wellFormed(byte[] value) {
    return value.length >= OVERHEAD
        && value[VERSION_OFFSET] == VERSION
        && (value[FLAGS_OFFSET] & ~KNOWN_FLAGS) == 0;
  }

  private static CipherlaneException tooShort(byte[] value) {
    return new CipherlaneException(
        ErrorCode.ENVELOPE_TOO_SHORT, value.length + " bytes, of at least " + OVERHEAD);
  }

  /**
   * Gives the key id.
   *
   * @return of the data key
   */
  public KeyId kid() {
    return KeyId.read(bytes, KID_OFFSET);
  }

  /**
   * Gives the flags.
   *
   * @return known bits only
   */
  public int flags() {
    return bytes[FLAGS_OFFSET];
  }

  /**
   * Tells whether the plaintext is compressed.
   *
   * @return whether it is one zstd frame
   */
  public boolean compressed() {
    return (flags() & FLAG_ZSTD) != 0;
  }

  /**
   * Tells whether the record key is bound.
   *
   * @return whether it is part of the additional data
   */
  public boolean keyBound() {
    return (flags() & FLAG_KEY_BOUND) != 0;
  }

  /**
   * Gives the size of what was encrypted.
   *
   * @return in bytes; of the compressed form, if it is compressed
   */
  public int plaintextSize() {
    return bytes.length - OVERHEAD;
  }
}
