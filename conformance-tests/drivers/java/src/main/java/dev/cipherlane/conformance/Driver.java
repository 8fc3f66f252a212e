// The conformance driver of the Java SDK (spec/conformance.md): the loop, and the operations that
// need no Kafka.
package dev.cipherlane.conformance;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import dev.cipherlane.Configuration;
import dev.cipherlane.Decryptor;
import dev.cipherlane.Encryptor;
import dev.cipherlane.RecordKey;
import dev.cipherlane.cipher.DerivedKeys;
import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.cipher.Primitives;
import dev.cipherlane.cipher.Secret;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import javax.crypto.AEADBadTagException;

/** Answers each line of standard input with one on standard output, until the input ends. */
public final class Driver {
  private static final Gson GSON = new GsonBuilder().serializeNulls().create();
  private static final HexFormat HEX = HexFormat.of();
  private static final List<String> FEATURES =
      List.of("record-key", "compression", "transactions", "failure-actions");

  /** One operation; what it throws becomes the answer's error. */
  private interface Operation {
    JsonObject apply(JsonObject request) throws Exception;
  }

  private final Map<String, Operation> operations = new HashMap<>();
  private JsonObject settings;
  private Encryptor encryptor;
  private Decryptor decryptor;

  private Driver() {
    operations.put("hello", request -> hello());
    operations.put("open", this::open);
    operations.put("rotate", request -> open(settings));
    operations.put("encrypt", this::encrypt);
    operations.put("decrypt", this::decrypt);
    operations.put("decrypt-all", this::decryptAll);
    operations.put("xaes-decrypt", Driver::xaesDecrypt);
    operations.put("primitive", Driver::primitive);
    operations.put("produce", KafkaOperations::produce);
    operations.put("consume", KafkaOperations::consume);
    operations.put("load", KafkaOperations::load);
    operations.put("soak-write", Soak::write);
    operations.put("soak-read", Soak::read);
  }

  /**
   * Runs the driver.
   *
   * @param args none
   * @throws IOException if standard input fails
   */
  public static void main(String[] args) throws IOException {
    PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    System.setOut(System.err); // whatever prints must not get between the answers
    Driver driver = new Driver();
    try (var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        out.println(GSON.toJson(driver.answer(JsonParser.parseString(line).getAsJsonObject())));
      }
    }
    driver.close();
  }

  private JsonObject answer(JsonObject request) {
    JsonObject answer = new JsonObject();
    answer.add("id", request.get("id"));
    Operation operation = operations.get(request.get("op").getAsString());
    try {
      if (operation == null) {
        throw new DriverException("unsupported-operation", request.get("op").getAsString());
      }
      answer.add("ok", operation.apply(request));
    } catch (Exception | AssertionError e) {
      answer.add("error", DriverException.describe(e));
    }
    return answer;
  }

  private JsonObject hello() {
    JsonObject hello = new JsonObject();
    hello.addProperty("protocol", 1);
    hello.addProperty("name", "java");
    hello.addProperty("version", Runtime.version().toString());
    hello.add("operations", GSON.toJsonTree(operations.keySet()));
    hello.add("features", GSON.toJsonTree(FEATURES));
    return hello;
  }

  private JsonObject open(JsonObject request) {
    close();
    settings = request;
    Map<String, String> given = new HashMap<>();
    request.getAsJsonObject("settings").asMap().forEach((k, v) -> given.put(k, v.getAsString()));
    encryptor = new Encryptor(Configuration.of(given));
    decryptor = new Decryptor(Configuration.of(given));
    return new JsonObject();
  }

  private void close() {
    if (encryptor != null) {
      encryptor.close();
      encryptor = null;
    }
    if (decryptor != null) {
      decryptor.close();
      decryptor = null;
    }
  }

  private JsonObject encrypt(JsonObject request) {
    byte[] value = bytes(request.get("value"));
    return value(encryptor.encrypt(topic(request), recordKey(request), value));
  }

  private JsonObject decrypt(JsonObject request) {
    byte[] value = bytes(request.get("value"));
    return value(
        decryptor.decrypt(topic(request), recordKey(request), value, decryptor.deadline()));
  }

  private JsonObject decryptAll(JsonObject request) {
    List<byte[]> values = new ArrayList<>();
    for (JsonElement value : request.getAsJsonArray("values")) {
      values.add(bytes(value));
    }
    decryptor.prepare(topic(request), values);
    JsonArray results = new JsonArray();
    long deadline = decryptor.deadline();
    for (byte[] value : values) {
      results.add(outcome(topic(request), value, deadline));
    }
    JsonObject ok = new JsonObject();
    ok.add("results", results);
    return ok;
  }

  private JsonObject outcome(String topic, byte[] value, long deadline) {
    try {
      return value(decryptor.decrypt(topic, RecordKey.UNKNOWN, value, deadline));
    } catch (RuntimeException e) {
      JsonObject failed = new JsonObject();
      failed.add("error", DriverException.describe(e));
      return failed;
    }
  }

  private static JsonObject xaesDecrypt(JsonObject request) throws AEADBadTagException {
    byte[] nonce = orEmpty(request, "nonce");
    byte[] ciphertext = orEmpty(request, "ciphertext");
    byte[] in = new byte[nonce.length + ciphertext.length];
    System.arraycopy(nonce, 0, in, 0, nonce.length);
    System.arraycopy(ciphertext, 0, in, nonce.length, ciphertext.length);
    Secret key = Secret.take(orEmpty(request, "key"));
    byte[] plaintext =
        new DerivedKeys().reader().decrypt(KeyId.of(key), key, orEmpty(request, "aad"), in, 0);
    JsonObject ok = new JsonObject();
    ok.add("plaintext", hex(plaintext));
    return ok;
  }

  private static JsonObject primitive(JsonObject request)
      throws GeneralSecurityException, DriverException {
    String name = request.get("name").getAsString();
    int size = request.has("size") ? request.get("size").getAsInt() : 0;
    byte[] key = orEmpty(request, "key");
    byte[] nonce = orEmpty(request, "nonce");
    byte[] aad = orEmpty(request, "aad");
    return value(
        Primitives.run(name, key, nonce, aad, orEmpty(request, "input"), size)
            .orElseThrow(() -> new DriverException("unsupported-operation", name)));
  }

  private static byte[] orEmpty(JsonObject request, String name) {
    return request.has(name) ? bytes(request.get(name)) : new byte[0];
  }

  private static String topic(JsonObject request) {
    return request.has("topic") ? request.get("topic").getAsString() : "";
  }

  private static RecordKey recordKey(JsonObject request) {
    return request.has("record_key")
        ? RecordKey.of(bytes(request.get("record_key")))
        : RecordKey.UNKNOWN;
  }

  private static JsonObject value(byte[] value) {
    JsonObject ok = new JsonObject();
    ok.add("value", hex(value));
    return ok;
  }

  static byte[] bytes(JsonElement text) {
    return text == null || text.isJsonNull() ? null : HEX.parseHex(text.getAsString());
  }

  static JsonElement hex(byte[] bytes) {
    return bytes == null ? JsonNull.INSTANCE : GSON.toJsonTree(HEX.formatHex(bytes));
  }
}
