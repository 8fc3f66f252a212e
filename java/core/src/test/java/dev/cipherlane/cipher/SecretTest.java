package dev.cipherlane.cipher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.TestKeys;
import dev.cipherlane.keys.DataKey;
import java.io.ByteArrayOutputStream;
import java.io.NotSerializableException;
import java.io.ObjectOutputStream;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** Keys are held, wiped, and never shown. CL-KEY-015 CL-KEY-013 */
class SecretTest {
  @Test
  void takesTheBytesOver() {
    byte[] bytes = TestKeys.bytes();
    byte[] copy = bytes.clone();
    Secret secret = Secret.take(bytes);
    assertThat(bytes).containsOnly(0);
    assertThat(secret.getEncoded()).isEqualTo(copy);
  }

  @Test
  void wipesAlsoWhatHasTheWrongSize() {
    for (int size : new int[] {0, 31, 33}) {
      byte[] bytes = new byte[size];
      Arrays.fill(bytes, (byte) 7);
      assertThatThrownBy(() -> Secret.take(bytes)).isInstanceOf(IllegalArgumentException.class);
      assertThat(bytes).doesNotContain(7);
    }
  }

  @Test
  void givesNothingOnceDestroyed() {
    Secret secret = Secret.take(TestKeys.bytes());
    secret.destroy();
    secret.destroy();
    assertThat(secret.isDestroyed()).isTrue();
    assertThatThrownBy(secret::getEncoded).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void neverPrintsNorSerializes() throws Exception {
    byte[] bytes = TestKeys.bytes();
    DataKey key = TestKeys.dataKey("scope", bytes);
    String hex = HexFormat.of().formatHex(bytes);
    assertThat(key.toString() + key.secret()).doesNotContain(hex).doesNotContain("[B@");
    try (ObjectOutputStream out = new ObjectOutputStream(new ByteArrayOutputStream())) {
      assertThatThrownBy(() -> out.writeObject(key.secret()))
          .isInstanceOf(NotSerializableException.class);
      assertThatThrownBy(() -> out.writeObject(key)).isInstanceOf(NotSerializableException.class);
    }
  }

  /** While one thread wipes, another must get the whole key or none. */
  @Test
  void neverGivesAHalfWipedKey() throws InterruptedException {
    for (int round = 0; round < 300; round++) {
      byte[] bytes = new byte[Secret.SIZE];
      Arrays.fill(bytes, (byte) 7);
      Secret secret = Secret.take(bytes);
      AtomicReference<byte[]> wrong = new AtomicReference<>();
      AtomicBoolean begun = new AtomicBoolean();
      Thread reader = new Thread(() -> readUntilWiped(secret, begun, wrong));
      reader.start();
      while (!begun.get()) {
        Thread.onSpinWait();
      }
      secret.destroy();
      reader.join();
      assertThat(wrong.get()).isNull();
    }
  }

  private static void readUntilWiped(
      Secret secret, AtomicBoolean begun, AtomicReference<byte[]> wrong) {
    try {
      while (true) {
        byte[] copy = secret.getEncoded();
        begun.set(true);
        for (byte b : copy) {
          if (b != 7) {
            wrong.set(copy);
          }
        }
      }
    } catch (IllegalStateException e) {
      // Wiped: as it should end.
    }
  }
}
