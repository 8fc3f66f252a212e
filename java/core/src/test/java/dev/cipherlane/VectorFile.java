package dev.cipherlane;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.StreamSupport;

/** The test vectors of {@code spec/vectors}. */
public final class VectorFile {
  /** One vector; prints as its id. */
  public record Vector(String id, JsonObject json) {
    public JsonObject input() {
      return json.getAsJsonObject("input");
    }

    public JsonObject output() {
      return json.getAsJsonObject("output");
    }

    public boolean ok() {
      return json.get("result").getAsString().equals("ok");
    }

    public String errorCode() {
      return json.getAsJsonObject("error").get("code").getAsString();
    }

    public String errorLayer() {
      return json.getAsJsonObject("error").get("layer").getAsString();
    }

    @Override
    public String toString() {
      return id;
    }
  }

  private VectorFile() {}

  public static List<Vector> of(String kind) throws IOException {
    Path file = folder().resolve(kind + ".json");
    JsonObject root = JsonParser.parseString(Files.readString(file)).getAsJsonObject();
    return StreamSupport.stream(root.getAsJsonArray("vectors").spliterator(), false)
        .map(JsonElement::getAsJsonObject)
        .map(json -> new Vector(json.get("id").getAsString(), json))
        .toList();
  }

  private static Path folder() throws IOException {
    for (Path at = Path.of("").toAbsolutePath(); at != null; at = at.getParent()) {
      if (Files.isDirectory(at.resolve("spec/vectors"))) {
        return at.resolve("spec/vectors");
      }
    }
    throw new IOException("no folder spec/vectors above the working directory");
  }

  /** Bytes of a member in hexadecimal; null for null. */
  public static byte[] bytes(JsonObject object, String name) {
    JsonElement value = object.get(name);
    return value.isJsonNull() ? null : HexFormat.of().parseHex(value.getAsString());
  }
}
