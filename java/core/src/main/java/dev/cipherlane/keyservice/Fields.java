package dev.cipherlane.keyservice;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.TopicName;
import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.keys.Term;
import java.io.IOException;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;

/**
 * The members of one JSON object of an answer, each taken out with the type and limits that {@code
 * spec/key-service.md} gives it, or refused as {@code key-service-bad-answer} [CL-KEY-003]. Unknown
 * members are not looked at.
 */
final class Fields {
  private static final int MAX_DIGITS = 18;

  private final Map<String, Object> members;

  private Fields(Map<String, Object> members) {
    this.members = members;
  }

  static Fields parse(byte[] body) {
    try {
      return new Fields(StrictJson.parse(body));
    } catch (IOException e) {
      // Without the cause: messages of the JSON reader may quote the text, which may hold a key.
      throw bad("the answer is not one JSON object");
    }
  }

  static CipherlaneException bad(String detail) {
    return new CipherlaneException(ErrorCode.KEY_SERVICE_BAD_ANSWER, detail);
  }

  boolean has(String name) {
    return members.containsKey(name);
  }

  String text(String name) {
    return as(String.class, members.get(name), name);
  }

  private static <T> T as(Class<T> type, Object value, String name) {
    if (!type.isInstance(value)) {
      throw bad("member " + name + " is missing or of another type");
    }
    return type.cast(value);
  }

  Fields object(String name) {
    return fields(members.get(name), name);
  }

  List<Fields> objects(String name) {
    List<?> elements = as(List.class, members.get(name), name);
    return elements.stream().map(element -> fields(element, name)).toList();
  }

  @SuppressWarnings("unchecked") // StrictJson makes no other maps.
  private static Fields fields(Object value, String name) {
    return new Fields(as(Map.class, value, name));
  }

  KeyId kid() {
    try {
      return KeyId.parse(text("kid"));
    } catch (IllegalArgumentException e) {
      throw bad("kid is not 32 lowercase hexadecimal digits");
    }
  }

  String scope() {
    String scope = text("scope");
    if (!TopicName.valid(scope)) {
      throw bad("scope is not a valid name");
    }
    return scope;
  }

  /** The bytes of the key, canonical base64 only. The text cannot be wiped, this array can. */
  byte[] key() {
    String text = text("key");
    byte[] key;
    try {
      key = Base64.getDecoder().decode(text);
    } catch (IllegalArgumentException e) {
      throw bad("key is not base64");
    }
    if (!Base64.getEncoder().encodeToString(key).equals(text)) {
      Arrays.fill(key, (byte) 0);
      throw bad("key is not canonical base64");
    }
    return key;
  }

  Term term(long sentAt) {
    try {
      return Term.of(sentAt, integer("refresh_in"), integer("expires_in"));
    } catch (IllegalArgumentException e) {
      throw bad("the lease is out of range");
    }
  }

  private long integer(String name) {
    String text = as(StrictJson.NumberText.class, members.get(name), name).text();
    if (text.length() > MAX_DIGITS || !text.chars().allMatch(c -> c >= '0' && c <= '9')) {
      throw bad("member " + name + " is not an integer in its range");
    }
    return Long.parseLong(text);
  }
}
