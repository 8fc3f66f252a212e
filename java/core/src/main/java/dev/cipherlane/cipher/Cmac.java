package dev.cipherlane.cipher;

import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Cipher;
import javax.crypto.SecretKey;

/**
 * AES-256-CMAC (NIST SP 800-38B) of messages that are exactly one block, which is all that XAES
 * needs. Not thread-safe.
 */
final class Cmac implements AutoCloseable {
  static final int BLOCK = 16;

  private static final int REDUCTION = 0x87;

  private final Cipher aes;
  private final byte[] subkey;

  /**
   * Begins.
   *
   * @throws IllegalStateException if the key was destroyed
   */
  Cmac(SecretKey key) throws GeneralSecurityException {
    aes = Cipher.getInstance("AES/ECB/NoPadding");
    aes.init(Cipher.ENCRYPT_MODE, key);
    subkey = aes.doFinal(new byte[BLOCK]);
    shiftLeft(subkey);
  }

  /** Writes the 16 bytes of a block's tag to {@code out}; the block is wiped. */
  void tag(byte[] block, byte[] out, int offset) throws GeneralSecurityException {
    for (int i = 0; i < BLOCK; i++) {
      block[i] ^= subkey[i];
    }
    aes.doFinal(block, 0, BLOCK, out, offset);
    Arrays.fill(block, (byte) 0);
  }

  /** Doubles in GF(2^128), without a branch on secret bits: the subkey K1. */
  private static void shiftLeft(byte[] block) {
    int carry = (block[0] & 0x80) >>> 7;
    for (int i = 0; i < BLOCK - 1; i++) {
      block[i] = (byte) ((block[i] << 1) | ((block[i + 1] & 0x80) >>> 7));
    }
    block[BLOCK - 1] = (byte) ((block[BLOCK - 1] << 1) ^ (REDUCTION * carry));
  }

  @Override
  public void close() {
    Arrays.fill(subkey, (byte) 0);
  }
}
