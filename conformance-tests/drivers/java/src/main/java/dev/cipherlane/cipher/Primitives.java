// In the package of the cipher, whose primitives are nobody else's: vectors of others are for
// these.
package dev.cipherlane.cipher;

import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.Optional;

/** The primitives under the envelope, as the SDK has them. */
public final class Primitives {
  private Primitives() {}

  /**
   * Runs one.
   *
   * @param name of the protocol
   * @param key of 32 bytes, or of HKDF the input
   * @param nonce or of HKDF the salt
   * @param aad or of HKDF the info
   * @param input what is encrypted, decrypted or authenticated
   * @param size of HKDF's output, bytes
   * @return the output; empty if the SDK has no such thing
   * @throws GeneralSecurityException if the SDK refuses it
   */
  public static Optional<byte[]> run(
      String name, byte[] key, byte[] nonce, byte[] aad, byte[] input, int size)
      throws GeneralSecurityException {
    return Optional.ofNullable(
        switch (name) {
          case "aes-256-gcm-decrypt" -> Gcm.decrypt(Secret.take(key), aad, joined(nonce, input), 0);
          case "xaes-256-gcm-encrypt" -> xaesEncrypt(key, nonce, aad, input);
          case "hkdf-sha256" -> size > Hkdf.MAX_SIZE ? null : Hkdf.derive(key, nonce, aad, size);
          case "aes-256-cmac" -> input.length == Cmac.BLOCK ? cmac(key, input) : null;
          default -> null;
        });
  }

  private static byte[] xaesEncrypt(byte[] key, byte[] nonce, byte[] aad, byte[] plaintext) {
    byte[] out = Arrays.copyOf(nonce, Xaes.NONCE_SIZE + plaintext.length + Xaes.TAG_SIZE);
    Gcm.encrypt(Xaes.derive(Secret.take(key), nonce, 0), aad, plaintext, out, Xaes.DERIVING_SIZE);
    return Arrays.copyOfRange(out, Xaes.NONCE_SIZE, out.length);
  }

  private static byte[] cmac(byte[] key, byte[] block) throws GeneralSecurityException {
    byte[] tag = new byte[Cmac.BLOCK];
    try (Cmac cmac = new Cmac(Secret.take(key))) {
      cmac.tag(block, tag, 0);
    }
    return tag;
  }

  private static byte[] joined(byte[] first, byte[] second) {
    byte[] both = Arrays.copyOf(first, first.length + second.length);
    System.arraycopy(second, 0, both, first.length, second.length);
    return both;
  }
}
