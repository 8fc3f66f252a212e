package dev.cipherlane.keyservice;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.cipherlane.CipherlaneException;
import dev.cipherlane.VectorFile;
import dev.cipherlane.VectorFile.Vector;
import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.KeySource.DecryptionAnswer;
import dev.cipherlane.keys.KeySource.EncryptionAnswer;
import dev.cipherlane.keys.Term;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.stream.StreamSupport;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The vectors of the key service's answers. CL-KEY-003 CL-KEY-004 CL-ERR-006 */
class AnswerVectorsTest {
  static List<Vector> encryptionKey() throws IOException {
    return VectorFile.of("encryption-key-answer");
  }

  @ParameterizedTest
  @MethodSource("encryptionKey")
  void encryptionKey(Vector vector) {
    HttpAnswer http = http(vector.input());
    if (!vector.ok()) {
      assertFails(vector, () -> Answers.encryptionKey(http));
      return;
    }
    EncryptionAnswer answer = Answers.encryptionKey(http);
    JsonObject output = vector.output();
    assertThat(answer.mode().name().toLowerCase(Locale.ROOT))
        .isEqualTo(output.get("mode").getAsString());
    assertThat(answer.term()).isEqualTo(term(output));
    assertThat(answer.key().isPresent()).isEqualTo(output.has("kid"));
    answer.key().ifPresent(key -> assertThat(key).hasToString(dataKey(output)));
  }

  private static String dataKey(JsonObject output) {
    return "DataKey[kid="
        + output.get("kid").getAsString()
        + ", scope="
        + output.get("scope").getAsString()
        + "]";
  }

  private static Term term(JsonObject output) {
    return Term.of(7, output.get("refresh_in").getAsLong(), output.get("expires_in").getAsLong());
  }

  private static HttpAnswer http(JsonObject input) {
    return new HttpAnswer(
        input.get("status").getAsInt(),
        input.get("content_type").getAsString(),
        input.get("body").getAsString().getBytes(StandardCharsets.UTF_8),
        7);
  }

  static List<Vector> decryptionKeys() throws IOException {
    return VectorFile.of("decryption-keys-answer");
  }

  @ParameterizedTest
  @MethodSource("decryptionKeys")
  void decryptionKeys(Vector vector) {
    HttpAnswer http = http(vector.input());
    List<KeyId> kids =
        StreamSupport.stream(vector.input().getAsJsonArray("kids").spliterator(), false)
            .map(JsonElement::getAsString)
            .map(KeyId::parse)
            .toList();
    if (!vector.ok()) {
      assertFails(vector, () -> Answers.decryptionKeys(http, kids));
      return;
    }
    DecryptionAnswer answer = Answers.decryptionKeys(http, kids);
    assertThat(answer.plaintextAccepted() ? "accept" : "reject")
        .isEqualTo(vector.output().get("plaintext").getAsString());
    assertThat(answer.keys()).hasSize(kids.size());
    JsonObject expected = vector.output().getAsJsonObject("keys");
    for (KeyId kid : kids) {
      assertThat(said(answer.keys().get(kid))).isEqualTo(expected.getAsJsonObject(kid.toString()));
    }
  }

  private static JsonObject said(KeySource.KeyAnswer answer) {
    JsonObject said = new JsonObject();
    if (answer instanceof KeySource.KeyGiven given) {
      said.addProperty("scope", given.key().scope());
    } else if (answer instanceof KeySource.KeyRefused refused) {
      said.addProperty("error", refused.error().code().code());
    }
    return said;
  }

  private static void assertFails(Vector vector, ThrowingCallable call) {
    CipherlaneException error = catchThrowableOfType(CipherlaneException.class, call);
    assertThat(error).isNotNull();
    assertThat(error.code().code()).isEqualTo(vector.errorCode());
    assertThat(error.code().layer().label()).isEqualTo(vector.errorLayer());
  }
}
