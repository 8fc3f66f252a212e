package dev.cipherlane.cipher;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.HexFormat;
import org.bouncycastle.crypto.digests.SHAKEDigest;
import org.junit.jupiter.api.Test;

/**
 * The accumulated vectors of <a href="https://c2sp.org/XAES-256-GCM">C2SP</a>: all ciphertexts of
 * 10,000 random inputs, hashed. CL-ENV-022
 */
class AccumulatedVectorsTest {
  private static final int ITERATIONS = 10_000;
  private static final String HASH =
      "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939";

  private final SHAKEDigest drawn = new SHAKEDigest(128);

  private byte[] draw(int size) {
    byte[] bytes = new byte[size];
    drawn.doOutput(bytes, 0, size);
    return bytes;
  }

  private byte[] drawSized() {
    return draw(draw(1)[0] & 0xFF);
  }

  @Test
  void allCiphertextsAreThoseOfOthers() throws Exception {
    SHAKEDigest results = new SHAKEDigest(128);
    for (int i = 0; i < ITERATIONS; i++) {
      byte[] key = draw(Secret.SIZE);
      byte[] nonce = draw(Xaes.NONCE_SIZE);
      byte[] plaintext = drawSized();
      byte[] aad = drawSized();
      byte[] out = Arrays.copyOf(nonce, Xaes.NONCE_SIZE + plaintext.length + Xaes.TAG_SIZE);
      Secret derived = Xaes.derive(Secret.take(key), nonce, 0);
      Gcm.encrypt(derived, aad, plaintext, out, Xaes.DERIVING_SIZE);
      results.update(out, Xaes.NONCE_SIZE, out.length - Xaes.NONCE_SIZE);
      assertThat(Gcm.decrypt(derived, aad, out, Xaes.DERIVING_SIZE)).isEqualTo(plaintext);
    }
    byte[] hash = new byte[32];
    results.doFinal(hash, 0, hash.length);
    assertThat(HexFormat.of().formatHex(hash)).isEqualTo(HASH);
  }
}
