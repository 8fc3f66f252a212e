package dev.cipherlane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.gson.JsonObject;
import dev.cipherlane.VectorFile.Vector;
import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.keys.DataKey;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keys.Mode;
import dev.cipherlane.keys.Term;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The vectors of reading and writing records, through Encryptor and Decryptor. */
class RecordVectorsTest {
  private final FakeKeySource source = new FakeKeySource();

  static List<Vector> decrypting() throws IOException {
    return VectorFile.of("decrypt");
  }

  @ParameterizedTest
  @MethodSource("decrypting")
  void decrypt(Vector vector) { // CL-ENV-001 to CL-ENV-013, CL-ERR-002
    source.decryption = (topic, kids) -> answer(vector.input(), kids);
    try (Decryptor decryptor = decryptor(vector.input())) {
      if (vector.ok()) {
        assertThat(decrypt(decryptor, vector.input()))
            .isEqualTo(VectorFile.bytes(vector.output(), "plaintext"));
      } else {
        assertFails(vector, () -> decrypt(decryptor, vector.input()));
      }
      assertThat(source.calls.get()).isLessThanOrEqualTo(1);
    }
  }

  private Decryptor decryptor(JsonObject input) {
    Configuration configuration =
        Settings.of("cipherlane.max.plaintext.bytes", input.get("max_plaintext").getAsString());
    return new Decryptor(source, LeaseClock.system(), configuration);
  }

  private static byte[] decrypt(Decryptor decryptor, JsonObject input) {
    RecordKey recordKey =
        input.has("record_key")
            ? RecordKey.of(VectorFile.bytes(input, "record_key"))
            : RecordKey.UNKNOWN;
    return decryptor.decrypt(
        input.get("topic").getAsString(),
        recordKey,
        VectorFile.bytes(input, "value"),
        decryptor.deadline());
  }

  private static KeySource.DecryptionAnswer answer(JsonObject input, List<KeyId> kids) {
    Map<KeyId, KeySource.KeyAnswer> keys = new HashMap<>();
    for (KeyId kid : kids) {
      keys.put(kid, answer(input.getAsJsonObject("keys").getAsJsonObject(kid.toString()), kid));
    }
    boolean accept = input.get("plaintext").getAsString().equals("accept");
    return new KeySource.DecryptionAnswer(accept, term(), keys);
  }

  private static KeySource.KeyAnswer answer(JsonObject key, KeyId kid) {
    try {
      if (key == null || key.has("error")) {
        String code = key == null ? "key-unknown" : key.get("error").getAsString();
        throw new CipherlaneException(ErrorCode.ofKeyService(code).orElseThrow(), "so it says");
      }
      String scope = key.get("scope").getAsString();
      return new KeySource.KeyGiven(DataKey.of(kid, scope, VectorFile.bytes(key, "key")), term());
    } catch (CipherlaneException e) {
      return new KeySource.KeyRefused(e);
    }
  }

  private static Term term() {
    return Term.of(LeaseClock.system().now(), 150, 300);
  }

  private static void assertFails(Vector vector, ThrowingCallable call) {
    CipherlaneException error = catchThrowableOfType(CipherlaneException.class, call);
    assertThat(error).isNotNull();
    assertThat(error.code().code()).isEqualTo(vector.errorCode());
    assertThat(error.code().layer().label()).isEqualTo(vector.errorLayer());
  }

  static List<Vector> writing() throws IOException {
    return VectorFile.of("write");
  }

  @ParameterizedTest
  @MethodSource("writing")
  void write(Vector vector) { // CL-ENV-040 CL-ENV-041 CL-ENV-042 CL-ENV-044
    JsonObject input = vector.input();
    Mode mode = Mode.valueOf(input.get("mode").getAsString().toUpperCase(Locale.ROOT));
    source.encryption =
        (topic, usage) ->
            new KeySource.EncryptionAnswer(
                mode,
                mode == Mode.ENCRYPT ? Optional.of(TestKeys.dataKey("claims")) : Optional.empty(),
                term());
    Configuration configuration =
        Settings.of("cipherlane.max.plaintext.bytes", input.get("max_plaintext").getAsString());
    byte[] value = VectorFile.bytes(input, "value");
    try (Encryptor encryptor = new Encryptor(source, LeaseClock.system(), configuration)) {
      if (!vector.ok()) {
        assertFails(vector, () -> encryptor.encrypt("claims", value));
      } else if (vector.output().get("action").getAsString().equals("unchanged")) {
        assertThat(encryptor.encrypt("claims", value)).isSameAs(value);
      } else {
        assertThat(encryptor.encrypt("claims", value)).hasSize(value.length + 60);
      }
    }
  }

  static List<Vector> topics() throws IOException {
    return VectorFile.of("topic");
  }

  @ParameterizedTest
  @MethodSource("topics")
  void topic(Vector vector) {
    String topic = vector.input().get("topic").getAsString();
    if (vector.ok()) {
      assertThat(TopicName.valid(topic)).isTrue();
      TopicName.check(topic);
    } else {
      assertFails(vector, () -> TopicName.check(topic));
    }
  }
}
