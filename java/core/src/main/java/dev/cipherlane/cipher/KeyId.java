package dev.cipherlane.cipher;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import javax.crypto.SecretKey;

/**
 * The name of a data key, 16 bytes that commit to it [CL-ENV-020]. Not a secret. Immutable and
 * thread-safe.
 */
public final class KeyId {
  /** Bytes of a key id. */
  public static final int SIZE = 16;

  private static final byte[] INFO = "cipherlane v1 key id".getBytes(StandardCharsets.US_ASCII);
  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);

  private final long high;
  private final long low;

  private KeyId(long high, long low) {
    this.high = high;
    this.low = low;
  }

  /**
   * Reads a key id.
   *
   * @param bytes at least {@code offset + 16} bytes
   * @param offset where it begins
   * @return the key id
   */
  public static KeyId read(byte[] bytes, int offset) {
    return new KeyId((long) LONGS.get(bytes, offset), (long) LONGS.get(bytes, offset + 8));
  }

  /**
   * Reads a key id as JSON has it.
   *
   * @param text 32 lowercase hexadecimal digits
   * @return the key id
   * @throws IllegalArgumentException if it is anything else
   */
  public static KeyId parse(String text) {
    if (text.length() != 2 * SIZE || !text.equals(text.toLowerCase(java.util.Locale.ROOT))) {
      throw new IllegalArgumentException("not 32 lowercase hexadecimal digits");
    }
    return read(HexFormat.of().parseHex(text), 0);
  }

  /**
   * Computes the key id of a data key: HKDF-SHA256 of RFC 5869 with an empty salt.
   *
   * @param key the data key
   * @return its key id
   */
  public static KeyId of(SecretKey key) {
    byte[] ikm = key.getEncoded();
    try {
      return read(Hkdf.derive(ikm, new byte[0], INFO, SIZE), 0);
    } finally {
      Arrays.fill(ikm, (byte) 0);
    }
  }

  /**
   * Compares without making an object, which every record would cost.
   *
   * @param bytes at least {@code offset + 16} bytes
   * @param offset where a key id begins
   * @return whether it is this one
   */
  public boolean isAt(byte[] bytes, int offset) {
    return low == (long) LONGS.get(bytes, offset + 8) && high == (long) LONGS.get(bytes, offset);
  }

  /**
   * Writes the 16 bytes.
   *
   * @param bytes where to, at least {@code offset + 16} bytes
   * @param offset where it begins
   */
  public void write(byte[] bytes, int offset) {
    LONGS.set(bytes, offset, high);
    LONGS.set(bytes, offset + 8, low);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof KeyId that && high == that.high && low == that.low;
  }

  @Override
  public int hashCode() {
    // A hash already: any part of it will do.
    return Long.hashCode(low);
  }

  /** Gives the 32 lowercase hexadecimal digits. */
  @Override
  public String toString() {
    return HexFormat.of().toHexDigits(high) + HexFormat.of().toHexDigits(low);
  }
}
