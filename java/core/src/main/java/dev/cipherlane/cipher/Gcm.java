package dev.cipherlane.cipher;

import java.security.GeneralSecurityException;
import java.security.Provider;
import java.util.Optional;
import javax.crypto.AEADBadTagException;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;

/**
 * One call of AES-256-GCM, with a cipher object per thread. Such an object keeps the key schedule
 * of the key that it used last, so that a run of records under one key pays for the schedule once.
 */
final class Gcm {
  static final int NONCE_SIZE = 12;
  static final int TAG_SIZE = 16;

  private static final String TRANSFORMATION = "AES/GCM/NoPadding";
  private static final int TAG_BITS = 8 * TAG_SIZE;

  // Encrypting and decrypting alternate in some threads, so each has its own.
  private static final ThreadLocal<Cipher> ENCRYPTING = ThreadLocal.withInitial(Gcm::newCipher);
  private static final ThreadLocal<Cipher> DECRYPTING = ThreadLocal.withInitial(Gcm::newCipher);

  private Gcm() {}

  private static Cipher newCipher() {
    try {
      Optional<Provider> provider = GcmProvider.CHOSEN;
      return provider.isPresent()
          ? Cipher.getInstance(TRANSFORMATION, provider.get())
          : Cipher.getInstance(TRANSFORMATION);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this Java runtime has no AES-GCM", e);
    }
  }

  /**
   * Encrypts {@code plaintext} to {@code out}, from {@code nonceOffset + 12} on, with the 12 bytes
   * at {@code nonceOffset} of {@code out} as nonce.
   */
  static void encrypt(Secret key, byte[] aad, byte[] plaintext, byte[] out, int nonceOffset) {
    refuseIfDestroyed(key);
    try {
      Cipher cipher = ENCRYPTING.get();
      cipher.init(Cipher.ENCRYPT_MODE, key, nonce(out, nonceOffset));
      cipher.updateAAD(aad);
      cipher.doFinal(plaintext, 0, plaintext.length, out, nonceOffset + NONCE_SIZE);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("AES-GCM failed to encrypt", e);
    }
  }

  /**
   * Decrypts what stands in {@code in} from {@code nonceOffset + 12} to its end, with the 12 bytes
   * at {@code nonceOffset} as nonce.
   *
   * @throws AEADBadTagException if the tag does not fit
   */
  static byte[] decrypt(Secret key, byte[] aad, byte[] in, int nonceOffset)
      throws AEADBadTagException {
    int begin = nonceOffset + NONCE_SIZE;
    refuseIfDestroyed(key);
    try {
      Cipher cipher = DECRYPTING.get();
      cipher.init(Cipher.DECRYPT_MODE, key, nonce(in, nonceOffset));
      cipher.updateAAD(aad);
      return cipher.doFinal(in, begin, in.length - begin);
    } catch (AEADBadTagException e) {
      throw e;
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("AES-GCM failed to decrypt", e);
    }
  }

  /** A cipher that still has the schedule of this key may not ask the key for its bytes. */
  private static void refuseIfDestroyed(Secret key) {
    if (key.isDestroyed()) {
      throw new IllegalStateException("the key was wiped");
    }
  }

  private static GCMParameterSpec nonce(byte[] bytes, int offset) {
    return new GCMParameterSpec(TAG_BITS, bytes, offset, NONCE_SIZE);
  }
}
