package dev.cipherlane.cipher;

import java.security.GeneralSecurityException;
import java.util.Arrays;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** HKDF-SHA256 of RFC 5869, for outputs of at most one block. Thread-safe. */
final class Hkdf {
  static final int MAX_SIZE = 32;

  private static final String HMAC = "HmacSHA256";

  private Hkdf() {}

  /**
   * Derives.
   *
   * @param salt may be empty
   * @param size 1 to 32
   */
  static byte[] derive(byte[] ikm, byte[] salt, byte[] info, int size) {
    if (size < 1 || size > MAX_SIZE) {
      throw new IllegalArgumentException("1 to " + MAX_SIZE + " bytes, not " + size);
    }
    // An empty salt and one of zeros are the same key of HMAC.
    byte[] pseudorandomKey = hmac(salt.length == 0 ? new byte[MAX_SIZE] : salt, ikm);
    byte[] block = Arrays.copyOf(info, info.length + 1);
    block[info.length] = 1;
    byte[] output = hmac(pseudorandomKey, block);
    Arrays.fill(pseudorandomKey, (byte) 0);
    return Arrays.copyOf(output, size);
  }

  private static byte[] hmac(byte[] key, byte[] message) {
    try {
      Mac mac = Mac.getInstance(HMAC);
      mac.init(new SecretKeySpec(key, HMAC));
      return mac.doFinal(message);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this Java runtime has no " + HMAC, e);
    }
  }
}
