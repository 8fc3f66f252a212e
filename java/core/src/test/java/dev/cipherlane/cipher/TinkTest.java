package dev.cipherlane.cipher;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.crypto.tink.Aead;
import com.google.crypto.tink.InsecureSecretKeyAccess;
import com.google.crypto.tink.KeysetHandle;
import com.google.crypto.tink.RegistryConfiguration;
import com.google.crypto.tink.aead.AeadConfig;
import com.google.crypto.tink.aead.XAesGcmKey;
import com.google.crypto.tink.aead.XAesGcmParameters;
import com.google.crypto.tink.subtle.Hkdf;
import com.google.crypto.tink.util.SecretBytes;
import dev.cipherlane.TestKeys;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Random;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

/**
 * Tink, which shares no code with ours, opens what we write and writes what we open. CL-ENV-022
 * CL-ENV-020
 */
class TinkTest {
  private final Random random = new Random();

  @BeforeAll
  static void register() throws Exception {
    AeadConfig.register();
  }

  private static Aead tink(byte[] key) throws Exception {
    XAesGcmParameters parameters =
        XAesGcmParameters.create(XAesGcmParameters.Variant.NO_PREFIX, Xaes.DERIVING_SIZE);
    SecretBytes secret = SecretBytes.copyFrom(key, InsecureSecretKeyAccess.get());
    return KeysetHandle.newBuilder()
        .addEntry(
            KeysetHandle.importKey(XAesGcmKey.create(parameters, secret, null))
                .withRandomId()
                .makePrimary())
        .build()
        .getPrimitive(RegistryConfiguration.get(), Aead.class);
  }

  private byte[] bytes(int max) {
    byte[] bytes = new byte[random.nextInt(max)];
    random.nextBytes(bytes);
    return bytes;
  }

  @RepeatedTest(20)
  void tinkOpensWhatWeWrite() throws Exception {
    byte[] key = TestKeys.bytes();
    byte[] aad = bytes(300);
    EncryptingSession session = EncryptingSession.begin(Secret.take(key.clone()), 0);
    for (int i = 0; i < 20; i++) {
      byte[] plaintext = bytes(5000);
      byte[] out = new byte[plaintext.length + 40];
      assertThat(session.tryEncrypt(aad, plaintext, out, 0, 0)).isTrue();
      assertThat(tink(key).decrypt(out, aad)).isEqualTo(plaintext);
    }
  }

  @RepeatedTest(20)
  void weOpenWhatTinkWrites() throws Exception {
    byte[] key = TestKeys.bytes();
    byte[] aad = bytes(300);
    DerivedKeys.Reader derived = new DerivedKeys().reader();
    for (int i = 0; i < 20; i++) {
      byte[] plaintext = bytes(5000);
      byte[] in = tink(key).encrypt(plaintext, aad);
      assertThat(derived.decrypt(TestKeys.kid(key), Secret.take(key.clone()), aad, in, 0))
          .isEqualTo(plaintext);
    }
  }

  @Test
  void tinksHkdfGivesTheSameKeyId() throws Exception {
    byte[] info = "cipherlane v1 key id".getBytes(StandardCharsets.US_ASCII);
    for (int i = 0; i < 100; i++) {
      byte[] key = TestKeys.bytes();
      byte[] kid = Hkdf.computeHkdf("HMACSHA256", key, new byte[0], info, KeyId.SIZE);
      assertThat(TestKeys.kid(key)).hasToString(HexFormat.of().formatHex(kid));
    }
  }
}
