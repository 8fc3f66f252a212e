package dev.cipherlane.cipher;

import java.io.NotSerializableException;
import java.io.ObjectOutputStream;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import javax.crypto.SecretKey;

/**
 * The one place that holds key bytes: 32 of them, for AES-256, until they are destroyed. Never
 * printed, never serialized [CL-KEY-015], never compared. Thread-safe.
 */
public final class Secret implements SecretKey {
  private static final long serialVersionUID = 1L;

  /** Bytes of every key. */
  public static final int SIZE = 32;

  private final transient byte[] bytes;
  private volatile boolean destroyed;

  private Secret(byte[] bytes) {
    this.bytes = bytes;
  }

  /**
   * Takes the bytes over; the caller's array is wiped.
   *
   * @param bytes the 32 bytes
   * @return the key
   * @throws IllegalArgumentException if there are not 32; the array is wiped all the same
   */
  public static Secret take(byte[] bytes) {
    byte[] copy = bytes.clone();
    Arrays.fill(bytes, (byte) 0);
    if (copy.length != SIZE) {
      Arrays.fill(copy, (byte) 0);
      throw new IllegalArgumentException("a key has 32 bytes, not " + copy.length);
    }
    return new Secret(copy);
  }

  /**
   * Gives a copy of the bytes, which whoever asked has to wipe; JCA's ciphers do.
   *
   * @return 32 bytes
   * @throws IllegalStateException if the key was destroyed, also while it was being copied: a half
   *     wiped key must never encrypt anything
   */
  @Override
  public byte[] getEncoded() {
    byte[] copy = bytes.clone();
    // Pairs with the fence of destroy(): who saw a wiped byte sees the flag as well.
    VarHandle.loadLoadFence();
    if (destroyed) {
      Arrays.fill(copy, (byte) 0);
      throw new IllegalStateException("the key was wiped");
    }
    return copy;
  }

  @Override
  public String getAlgorithm() {
    return "AES";
  }

  @Override
  public String getFormat() {
    return "RAW";
  }

  /** Overwrites the bytes. May be called more than once. */
  @Override
  public void destroy() {
    destroyed = true;
    VarHandle.fullFence();
    Arrays.fill(bytes, (byte) 0);
  }

  @Override
  public boolean isDestroyed() {
    return destroyed;
  }

  /** Says nothing of the bytes. */
  @Override
  public String toString() {
    return "Secret";
  }

  private void writeObject(ObjectOutputStream out) throws NotSerializableException {
    throw new NotSerializableException("keys are not serialized");
  }
}
