package dev.cipherlane.cipher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonObject;
import dev.cipherlane.VectorFile;
import dev.cipherlane.VectorFile.Vector;
import dev.cipherlane.envelope.Envelope;
import dev.cipherlane.envelope.Header;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import javax.crypto.AEADBadTagException;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The vectors of cipher, key id and envelope writing, through the classes that records go through.
 */
class CipherVectorsTest {
  static List<Vector> keyIds() throws IOException {
    return VectorFile.of("key-id");
  }

  @ParameterizedTest
  @MethodSource("keyIds")
  void keyId(Vector vector) { // CL-ENV-020
    byte[] key = VectorFile.bytes(vector.input(), "key");
    if (vector.ok()) {
      assertThat(KeyId.of(Secret.take(key))).hasToString(vector.output().get("kid").getAsString());
    } else {
      assertThat(vector.errorCode()).isEqualTo("key-malformed");
      assertThatThrownBy(() -> Secret.take(key)).isInstanceOf(IllegalArgumentException.class);
    }
  }

  static List<Vector> xaes() throws IOException {
    return VectorFile.of("xaes");
  }

  @ParameterizedTest
  @MethodSource("xaes")
  void xaes(Vector vector) throws AEADBadTagException { // CL-ENV-022
    JsonObject input = vector.input();
    if (input.has("plaintext")) {
      assertThat(encrypt(input)).isEqualTo(VectorFile.bytes(vector.output(), "ciphertext"));
    } else if (vector.ok()) {
      assertThat(decrypt(input)).isEqualTo(VectorFile.bytes(vector.output(), "plaintext"));
    } else {
      assertThat(vector.errorCode()).isEqualTo("authentication-failed");
      assertThatThrownBy(() -> decrypt(input)).isInstanceOf(AEADBadTagException.class);
    }
  }

  private static byte[] encrypt(JsonObject input) {
    byte[] nonce = VectorFile.bytes(input, "nonce");
    byte[] plaintext = VectorFile.bytes(input, "plaintext");
    byte[] out = new byte[nonce.length + plaintext.length + Xaes.TAG_SIZE];
    int counter = java.nio.ByteBuffer.wrap(nonce).getInt(EncryptingSession.PREFIX_SIZE);
    if (counter == -1) {
      // The one counter that no session uses.
      System.arraycopy(nonce, 0, out, 0, nonce.length);
      Secret derived = Xaes.derive(Secret.take(VectorFile.bytes(input, "key")), nonce, 0);
      Gcm.encrypt(derived, VectorFile.bytes(input, "aad"), plaintext, out, Xaes.DERIVING_SIZE);
    } else {
      session(VectorFile.bytes(input, "key"), nonce, counter)
          .tryEncrypt(VectorFile.bytes(input, "aad"), plaintext, out, 0, 0);
    }
    return Arrays.copyOfRange(out, nonce.length, out.length);
  }

  private static EncryptingSession session(byte[] key, byte[] prefix, int counter) {
    return EncryptingSession.at(
        Secret.take(key),
        Arrays.copyOf(prefix, EncryptingSession.PREFIX_SIZE),
        Integer.toUnsignedLong(counter),
        0);
  }

  private static byte[] decrypt(JsonObject input) throws AEADBadTagException {
    byte[] nonce = VectorFile.bytes(input, "nonce");
    byte[] ciphertext = VectorFile.bytes(input, "ciphertext");
    byte[] in = Arrays.copyOf(nonce, nonce.length + ciphertext.length);
    System.arraycopy(ciphertext, 0, in, nonce.length, ciphertext.length);
    Secret key = Secret.take(VectorFile.bytes(input, "key"));
    return new DerivedKeys()
        .reader()
        .decrypt(KeyId.of(key), key, VectorFile.bytes(input, "aad"), in, 0);
  }

  static List<Vector> encrypting() throws IOException {
    return VectorFile.of("encrypt");
  }

  @ParameterizedTest
  @MethodSource("encrypting")
  void envelope(Vector vector) { // CL-ENV-021 CL-ENV-043
    JsonObject input = vector.input();
    byte[] key = VectorFile.bytes(input, "key");
    int flags = input.get("flags").getAsInt();
    Header header =
        Header.of(flags, KeyId.of(Secret.take(key.clone())), input.get("scope").getAsString());
    byte[] aad =
        (flags & Envelope.FLAG_KEY_BOUND) == 0
            ? header.aad()
            : header.aad(VectorFile.bytes(input, "record_key"));
    byte[] plaintext = VectorFile.bytes(input, "plaintext");
    byte[] envelope = header.newEnvelope(plaintext.length);
    int counter = (int) input.get("counter").getAsLong();
    assertThat(
            session(key, VectorFile.bytes(input, "nonce_prefix"), counter)
                .tryEncrypt(aad, plaintext, envelope, Envelope.NONCE_OFFSET, 0))
        .isTrue();
    assertThat(envelope).isEqualTo(VectorFile.bytes(vector.output(), "envelope"));
  }
}
