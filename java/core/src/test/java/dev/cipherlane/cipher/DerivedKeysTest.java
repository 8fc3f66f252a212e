package dev.cipherlane.cipher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.TestKeys;
import java.util.ArrayList;
import java.util.List;
import javax.crypto.AEADBadTagException;
import org.junit.jupiter.api.Test;

/** The reader's cache of derived keys. */
class DerivedKeysTest {
  private static final byte[] AAD = {1};
  private static final byte[] PLAINTEXT = {2, 3};

  private final DerivedKeys derived = new DerivedKeys();
  private final DerivedKeys.Reader reader = derived.reader();
  private final Secret key = Secret.take(TestKeys.bytes());
  private final KeyId kid = KeyId.of(key);

  private byte[] encrypted() {
    byte[] out = new byte[PLAINTEXT.length + 40];
    EncryptingSession.begin(key, 0).tryEncrypt(AAD, PLAINTEXT, out, 0, 0);
    return out;
  }

  @Test
  void holdsNoMoreThanTheLimitAndStillReadsWhatLeft() throws AEADBadTagException {
    List<byte[]> all = new ArrayList<>();
    for (int i = 0; i < DerivedKeys.MAX + 100; i++) {
      all.add(encrypted());
      assertThat(reader.decrypt(kid, key, AAD, all.get(i), 0)).isEqualTo(PLAINTEXT);
    }
    assertThat(derived.size()).isEqualTo(DerivedKeys.MAX);
    assertThat(reader.decrypt(kid, key, AAD, all.get(0), 0)).isEqualTo(PLAINTEXT);
  }

  @Test
  void oneSessionTakesOnePlace() throws AEADBadTagException {
    EncryptingSession session = EncryptingSession.begin(key, 0);
    for (int i = 0; i < 10; i++) {
      byte[] out = new byte[PLAINTEXT.length + 40];
      session.tryEncrypt(AAD, PLAINTEXT, out, 0, 0);
      reader.decrypt(kid, key, AAD, out, 0);
    }
    assertThat(derived.size()).isEqualTo(1);
  }

  @Test
  void forgetsWhatAWipedKeyDerived() throws AEADBadTagException { // CL-KEY-005
    byte[] value = encrypted();
    Secret other = Secret.take(TestKeys.bytes());
    byte[] otherValue = new byte[PLAINTEXT.length + 40];
    EncryptingSession.begin(other, 0).tryEncrypt(AAD, PLAINTEXT, otherValue, 0, 0);
    reader.decrypt(kid, key, AAD, value, 0);
    reader.decrypt(KeyId.of(other), other, AAD, otherValue, 0);
    key.destroy();
    derived.forget(kid);
    assertThat(derived.size()).isEqualTo(1);
    assertThatThrownBy(() -> reader.decrypt(kid, key, AAD, value, 0))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void refusesEveryOtherBit() throws AEADBadTagException { // CL-ENV-010
    byte[] value = encrypted();
    for (int bit = 0; bit < 8 * value.length; bit++) {
      byte[] changed = value.clone();
      changed[bit / 8] ^= (byte) (1 << (bit % 8));
      assertThatThrownBy(() -> reader.decrypt(kid, key, AAD, changed, 0))
          .isInstanceOf(AEADBadTagException.class);
    }
    assertThat(reader.decrypt(kid, key, AAD, value, 0)).isEqualTo(PLAINTEXT);
  }
}
