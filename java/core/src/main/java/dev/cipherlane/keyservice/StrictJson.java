package dev.cipherlane.keyservice;

import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.gson.stream.MalformedJsonException;
import java.io.IOException;
import java.io.StringReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads one JSON object, and nothing that is not exactly that: no second value behind it, no member
 * twice, no more than 8 levels, no invalid UTF-8. Numbers stay the text that they are.
 */
final class StrictJson {
  static final int MAX_DEPTH = 8;

  /** A number as it was written. */
  record NumberText(String text) {}

  /** What JSON calls null. */
  enum Null {
    NULL
  }

  private StrictJson() {}

  /**
   * Reads.
   *
   * @return values are String, NumberText, Boolean, Null, List and Map
   * @throws IOException if it is anything but one object
   */
  static Map<String, Object> parse(byte[] body) throws IOException {
    String text = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(body)).toString();
    try (JsonReader reader = new JsonReader(new StringReader(text))) {
      reader.setStrictness(Strictness.STRICT);
      reader.setNestingLimit(MAX_DEPTH);
      Map<String, Object> object = object(reader);
      if (reader.peek() != JsonToken.END_DOCUMENT) {
        throw new MalformedJsonException("something follows");
      }
      return object;
    } catch (IllegalStateException | NumberFormatException e) {
      throw new MalformedJsonException("not the kind of value expected", e);
    }
  }

  private static Map<String, Object> object(JsonReader reader) throws IOException {
    Map<String, Object> members = new LinkedHashMap<>();
    reader.beginObject();
    while (reader.hasNext()) {
      if (members.put(reader.nextName(), value(reader)) != null) {
        throw new MalformedJsonException("a member twice");
      }
    }
    reader.endObject();
    return members;
  }

  private static List<Object> array(JsonReader reader) throws IOException {
    List<Object> elements = new ArrayList<>();
    reader.beginArray();
    while (reader.hasNext()) {
      elements.add(value(reader));
    }
    reader.endArray();
    return elements;
  }

  private static Object value(JsonReader reader) throws IOException {
    return switch (reader.peek()) {
      case BEGIN_OBJECT -> object(reader);
      case BEGIN_ARRAY -> array(reader);
      case STRING -> reader.nextString();
      case NUMBER -> new NumberText(reader.nextString());
      case BOOLEAN -> reader.nextBoolean();
      case NULL -> {
        reader.nextNull();
        yield Null.NULL;
      }
      default -> throw new MalformedJsonException("a value expected");
    };
  }
}
