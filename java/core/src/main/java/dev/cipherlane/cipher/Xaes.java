package dev.cipherlane.cipher;

import java.security.GeneralSecurityException;
import javax.crypto.SecretKey;

/**
 * XAES-256-GCM of C2SP over the ciphers of the Java runtime [CL-ENV-022]: derives the AES-256-GCM
 * key of a nonce. What it derives is good for 2^64 nonces that share the first 12 bytes.
 * Thread-safe.
 */
public final class Xaes {
  /** Bytes of a nonce. */
  public static final int NONCE_SIZE = 24;

  /** Bytes of the nonce's first part, which derives a key. The other 12 are the nonce of GCM. */
  public static final int DERIVING_SIZE = 12;

  /** Bytes of a tag. */
  public static final int TAG_SIZE = Gcm.TAG_SIZE;

  private Xaes() {}

  /**
   * Derives the AES-256-GCM key for all nonces that begin with the same 12 bytes.
   *
   * @param key the data key
   * @param nonce has those 12 bytes
   * @param offset where they begin
   * @return the derived key, which the caller has to destroy
   * @throws IllegalStateException if the data key was destroyed
   */
  public static Secret derive(SecretKey key, byte[] nonce, int offset) {
    byte[] derived = new byte[Secret.SIZE];
    try (Cmac cmac = new Cmac(key)) {
      cmac.tag(block(1, nonce, offset), derived, 0);
      cmac.tag(block(2, nonce, offset), derived, Cmac.BLOCK);
      return Secret.take(derived);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this Java runtime cannot derive an AES-256 key", e);
    }
  }

  /** What half of the derived key is the tag of. */
  private static byte[] block(int half, byte[] nonce, int offset) {
    byte[] block = new byte[Cmac.BLOCK];
    block[1] = (byte) half;
    block[2] = 'X';
    System.arraycopy(nonce, offset, block, Cmac.BLOCK - DERIVING_SIZE, DERIVING_SIZE);
    return block;
  }
}
