package dev.cipherlane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.keys.DataKey;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keys.Mode;
import dev.cipherlane.keys.Term;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

/** Every change of an envelope is refused, from Encryptor to Decryptor. CL-ENV-010 CL-ENV-012 */
class HostileEnvelopesTest {
  private final byte[] key = TestKeys.bytes();
  private final FakeKeySource source = new FakeKeySource();
  private final Random random = new Random();
  private final Encryptor encryptor = new Encryptor(source, LeaseClock.system(), Settings.of());
  private final Decryptor decryptor = new Decryptor(source, LeaseClock.system(), Settings.of());

  HostileEnvelopesTest() {
    source.encryption =
        (topic, usage) ->
            new KeySource.EncryptionAnswer(Mode.ENCRYPT, Optional.of(dataKey()), term());
    source.decryption =
        (topic, kids) ->
            new KeySource.DecryptionAnswer(
                false,
                term(),
                kids.stream()
                    .collect(
                        Collectors.toMap(
                            kid -> kid,
                            kid ->
                                kid.equals(TestKeys.kid(key))
                                    ? new KeySource.KeyGiven(dataKey(), term())
                                    : new KeySource.KeyRefused(
                                        new CipherlaneException(
                                            ErrorCode.KEY_UNKNOWN, "no such key")))));
  }

  private DataKey dataKey() {
    return TestKeys.dataKey("scope", key);
  }

  private static Term term() {
    return Term.of(LeaseClock.system().now(), 100, 100);
  }

  @AfterEach
  void close() {
    encryptor.close();
    decryptor.close();
  }

  private byte[] decrypt(byte[] value) {
    return decryptor.decrypt("topic", RecordKey.of(null), value, decryptor.deadline());
  }

  private byte[] plaintext() {
    byte[] plaintext = new byte[random.nextInt(60)];
    random.nextBytes(plaintext);
    return plaintext;
  }

  @RepeatedTest(20)
  void everyFlippedBitIsRefused() {
    byte[] plaintext = plaintext();
    byte[] envelope = encryptor.encrypt("topic", plaintext);
    for (int bit = 0; bit < 8 * envelope.length; bit++) {
      byte[] changed = envelope.clone();
      changed[bit / 8] ^= (byte) (1 << (bit % 8));
      assertThatThrownBy(() -> decrypt(changed))
          .as("bit %d", bit)
          .isInstanceOf(CipherlaneException.class);
    }
    assertThat(decrypt(envelope)).isEqualTo(plaintext);
  }

  @RepeatedTest(20)
  void everyCutIsRefused() {
    byte[] envelope = encryptor.encrypt("topic", plaintext());
    for (int size = 0; size < envelope.length; size++) {
      byte[] cut = Arrays.copyOf(envelope, size);
      assertThatThrownBy(() -> decrypt(cut))
          .as("%d bytes", size)
          .isInstanceOf(CipherlaneException.class);
      byte[] beginning = Arrays.copyOfRange(envelope, envelope.length - size, envelope.length);
      assertThatThrownBy(() -> decrypt(beginning)).isInstanceOf(CipherlaneException.class);
    }
  }

  @Test
  void randomBytesAreRefused() {
    for (int i = 0; i < 20_000; i++) {
      byte[] bytes = new byte[random.nextInt(120)];
      random.nextBytes(bytes);
      byte[] start = {(byte) 0xC1, (byte) 0x9E, 1, 0};
      System.arraycopy(start, 0, bytes, 0, Math.min(bytes.length, random.nextInt(5)));
      assertThatThrownBy(() -> decrypt(bytes)).isInstanceOf(CipherlaneException.class);
    }
  }

  @Test
  void messagesNameTopicAndKidAndHoldNoSecrets() { // CL-ERR-001
    byte[] envelope =
        encryptor.encrypt(
            "topic", "the plaintext".getBytes(java.nio.charset.StandardCharsets.UTF_8));
    envelope[envelope.length - 1] ^= 1;
    assertThatThrownBy(() -> decrypt(envelope))
        .hasMessageContaining("topic topic")
        .hasMessageContaining(TestKeys.kid(key).toString())
        .hasMessageContaining("authentication-failed")
        .satisfies(
            e ->
                assertThat(e.getMessage()).doesNotContain(java.util.HexFormat.of().formatHex(key)));
  }

  @Test
  void everyErrorSaysWhetherItPasses() { // CL-ERR-004
    List<ErrorCode> passing =
        Arrays.stream(ErrorCode.values()).filter(ErrorCode::retriable).toList();
    assertThat(passing)
        .containsExactlyInAnyOrder(
            ErrorCode.KEY_SERVICE_UNAVAILABLE,
            ErrorCode.LEASE_EXPIRED,
            ErrorCode.AUDIT_UNAVAILABLE,
            ErrorCode.KEY_SERVICE_INTERNAL);
  }
}
