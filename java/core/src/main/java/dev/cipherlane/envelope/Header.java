package dev.cipherlane.envelope;

import dev.cipherlane.cipher.KeyId;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * The one writer: the first 20 bytes of an envelope, and the additional data that begins with them
 * [CL-ENV-021] [CL-ENV-043]. The same for all records of a data key with the same flags, so it is
 * made once. Immutable and thread-safe.
 */
public final class Header {
  private static final int NULL_KEY = 0xFFFF_FFFF;

  private final byte[] aad;

  private Header(byte[] aad) {
    this.aad = aad;
  }

  /**
   * Makes a header.
   *
   * @param flags bits of {@link Envelope}
   * @param kid the key id
   * @param scope the scope of the data key, 1 to 249 bytes
   * @return the header
   * @throws IllegalArgumentException for unknown flags or a scope of another size
   */
  public static Header of(int flags, KeyId kid, String scope) {
    byte[] name = scope.getBytes(StandardCharsets.UTF_8);
    if ((flags & ~(Envelope.FLAG_ZSTD | Envelope.FLAG_KEY_BOUND)) != 0) {
      throw new IllegalArgumentException("unknown flags " + flags);
    }
    if (name.length == 0 || name.length > 249) {
      throw new IllegalArgumentException("a scope has 1 to 249 bytes, not " + name.length);
    }
    byte[] aad = new byte[Envelope.NONCE_OFFSET + Short.BYTES + name.length];
    kid.write(aad, Envelope.KID_OFFSET);
    ByteBuffer.wrap(aad)
        .put(Envelope.MAGIC_0)
        .put(Envelope.MAGIC_1)
        .put(Envelope.VERSION)
        .put((byte) flags)
        .position(Envelope.NONCE_OFFSET)
        .putShort((short) name.length)
        .put(name);
    return new Header(aad);
  }

  /**
   * Allocates an envelope of exactly the right size, with its first 20 bytes written.
   *
   * @param plaintextSize bytes to encrypt, 0 to 2,147,483,587
   * @return the envelope, still without nonce, ciphertext and tag
   * @throws IllegalArgumentException if an array cannot be that long
   */
  public byte[] newEnvelope(int plaintextSize) {
    if (plaintextSize < 0 || plaintextSize > Integer.MAX_VALUE - Envelope.OVERHEAD) {
      throw new IllegalArgumentException("no envelope holds " + plaintextSize + " bytes");
    }
    byte[] envelope = new byte[Envelope.OVERHEAD + plaintextSize];
    System.arraycopy(aad, 0, envelope, 0, Envelope.NONCE_OFFSET);
    return envelope;
  }

  /**
   * Gives the additional data of records whose key is not bound.
   *
   * @return not a copy, and never to be changed: copying it would cost every record
   */
  public byte[] aad() {
    return aad;
  }

  /**
   * Gives the additional data of a record whose key is bound.
   *
   * @param recordKey the record key, or null for a null key, which differs from an empty one
   * @return a new array
   */
  public byte[] aad(byte[] recordKey) {
    int size = recordKey == null ? 0 : recordKey.length;
    return ByteBuffer.allocate(Math.addExact(aad.length + Integer.BYTES, size))
        .put(aad)
        .putInt(recordKey == null ? NULL_KEY : size)
        .put(recordKey == null ? new byte[0] : recordKey)
        .array();
  }
}
