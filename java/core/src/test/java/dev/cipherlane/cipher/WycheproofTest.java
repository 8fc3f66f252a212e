package dev.cipherlane.cipher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import javax.crypto.AEADBadTagException;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * Wycheproof's vectors for what XAES and the key id are made of. They come with its Go module, from
 * Go's module cache or proxy; they are not copied here. CL-ENV-020 CL-ENV-022
 */
class WycheproofTest {
  private static final String MODULE =
      "github.com/c2sp/wycheproof@v0.0.0-20260902155932-3fa63dd0344a";

  private static Path folder;

  @BeforeAll
  static void find() throws IOException {
    Process go =
        new ProcessBuilder("go", "mod", "download", "-json", MODULE)
            .directory(Path.of("target").toFile())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    String answer = new String(go.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    JsonObject module = JsonParser.parseString(answer).getAsJsonObject();
    assertThat(module.has("Dir")).as(answer).isTrue();
    folder = Path.of(module.get("Dir").getAsString(), "testvectors_v1");
  }

  /** The tests of those groups of a file that a condition takes. */
  private static List<JsonObject> tests(String file, Predicate<JsonObject> groups)
      throws IOException {
    return objects(
            JsonParser.parseString(Files.readString(folder.resolve(file + "_test.json")))
                .getAsJsonObject(),
            "testGroups")
        .filter(groups)
        .flatMap(group -> objects(group, "tests"))
        .toList();
  }

  private static Stream<JsonObject> objects(JsonObject parent, String name) {
    return StreamSupport.stream(parent.getAsJsonArray(name).spliterator(), false)
        .map(JsonElement::getAsJsonObject);
  }

  private static boolean sizes(JsonObject group, int key, int nonce, int tag) {
    return group.get("keySize").getAsInt() == key
        && (nonce == 0 || group.get("ivSize").getAsInt() == nonce)
        && group.get("tagSize").getAsInt() == tag;
  }

  private static byte[] bytes(JsonObject test, String name) {
    return HexFormat.of().parseHex(test.get(name).getAsString());
  }

  private static boolean valid(JsonObject test) {
    return test.get("result").getAsString().equals("valid");
  }

  @Test
  void aesGcm() throws Exception {
    List<JsonObject> tests = tests("aes_gcm", group -> sizes(group, 256, 96, 128));
    assertThat(tests).hasSizeGreaterThan(50);
    for (JsonObject test : tests) {
      Secret key = Secret.take(bytes(test, "key"));
      byte[] all = concat(bytes(test, "iv"), bytes(test, "ct"), bytes(test, "tag"));
      if (valid(test)) {
        byte[] plaintext = bytes(test, "msg");
        byte[] out = Arrays.copyOf(bytes(test, "iv"), all.length);
        Gcm.encrypt(key, bytes(test, "aad"), plaintext, out, 0);
        assertThat(out).as("%s", test).isEqualTo(all);
        assertThat(Gcm.decrypt(key, bytes(test, "aad"), all, 0)).isEqualTo(plaintext);
      } else {
        assertThatThrownBy(() -> Gcm.decrypt(key, bytes(test, "aad"), all, 0))
            .as("%s", test)
            .isInstanceOf(AEADBadTagException.class);
      }
    }
  }

  private static byte[] concat(byte[]... parts) {
    return HexFormat.of()
        .parseHex(String.join("", Arrays.stream(parts).map(HexFormat.of()::formatHex).toList()));
  }

  @Test
  void hkdfSha256() throws IOException {
    List<JsonObject> tests =
        tests("hkdf_sha256", group -> true).stream()
            .filter(test -> test.get("size").getAsInt() <= Hkdf.MAX_SIZE && valid(test))
            .toList();
    assertThat(tests).hasSizeGreaterThan(20);
    for (JsonObject test : tests) {
      int size = test.get("size").getAsInt();
      assertThat(Hkdf.derive(bytes(test, "ikm"), bytes(test, "salt"), bytes(test, "info"), size))
          .as("%s", test)
          .isEqualTo(bytes(test, "okm"));
    }
    for (int size : new int[] {-1, 0, Hkdf.MAX_SIZE + 1}) {
      assertThatThrownBy(() -> Hkdf.derive(new byte[1], new byte[0], new byte[0], size))
          .isInstanceOf(IllegalArgumentException.class);
    }
  }

  @Test
  void aesCmacOfOneBlock() throws IOException, GeneralSecurityException {
    List<JsonObject> tests =
        tests("aes_cmac", group -> sizes(group, 256, 0, 128)).stream()
            .filter(test -> bytes(test, "msg").length == Cmac.BLOCK)
            .toList();
    assertThat(tests).hasSizeGreaterThan(2);
    for (JsonObject test : tests) {
      byte[] tag = new byte[Cmac.BLOCK];
      try (Cmac cmac = new Cmac(Secret.take(bytes(test, "key")))) {
        cmac.tag(bytes(test, "msg"), tag, 0);
      }
      assertThat(Arrays.equals(tag, bytes(test, "tag"))).as("%s", test).isEqualTo(valid(test));
    }
  }
}
