package dev.cipherlane.cipher;

import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Cipher;
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

  private static final int BLOCK = 16;
  private static final int REDUCTION = 0x87;

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
    try {
      Cipher aes = Cipher.getInstance("AES/ECB/NoPadding");
      aes.init(Cipher.ENCRYPT_MODE, key);
      byte[] subkey = aes.doFinal(new byte[BLOCK]);
      shiftLeft(subkey);
      deriveHalf(aes, 1, nonce, offset, subkey, derived);
      deriveHalf(aes, 2, nonce, offset, subkey, derived);
      Arrays.fill(subkey, (byte) 0);
      return Secret.take(derived);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this Java runtime cannot derive an AES-256 key", e);
    }
  }

  /** One block of CMAC: half of the derived key. */
  private static void deriveHalf(
      Cipher aes, int half, byte[] nonce, int offset, byte[] subkey, byte[] derived)
      throws GeneralSecurityException {
    byte[] block = new byte[BLOCK];
    block[1] = (byte) half;
    block[2] = 'X';
    System.arraycopy(nonce, offset, block, 4, DERIVING_SIZE);
    for (int i = 0; i < BLOCK; i++) {
      block[i] ^= subkey[i];
    }
    aes.doFinal(block, 0, BLOCK, derived, (half - 1) * BLOCK);
    Arrays.fill(block, (byte) 0);
  }

  /** Doubles in GF(2^128), without a branch on secret bits: the subkey K1 of CMAC. */
  private static void shiftLeft(byte[] block) {
    int carry = (block[0] & 0x80) >>> 7;
    for (int i = 0; i < BLOCK - 1; i++) {
      block[i] = (byte) ((block[i] << 1) | ((block[i + 1] & 0x80) >>> 7));
    }
    block[BLOCK - 1] = (byte) ((block[BLOCK - 1] << 1) ^ (REDUCTION * carry));
  }
}
