package dev.cipherlane.testing;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** The line of JSON that a broker, or a cluster, prints when it is ready. */
record ReadyLine(
    String bootstrap,
    Map<String, String> listeners,
    long pid,
    Path dir,
    Path logDir,
    List<ReadyLine> nodes) {

  static ReadyLine parse(String line) throws IOException {
    try {
      return read(JsonParser.parseString(line).getAsJsonObject());
    } catch (JsonParseException | IllegalStateException | NumberFormatException e) {
      throw new IOException("cannot read its answer: " + line, e);
    }
  }

  private static ReadyLine read(JsonObject line) {
    Map<String, String> listeners = new HashMap<>();
    if (line.has("listeners")) {
      for (var listener : line.getAsJsonObject("listeners").entrySet()) {
        listeners.put(listener.getKey(), listener.getValue().getAsString());
      }
    }
    List<ReadyLine> nodes = new ArrayList<>();
    if (line.has("nodes")) {
      for (JsonElement node : line.getAsJsonArray("nodes")) {
        nodes.add(read(node.getAsJsonObject()));
      }
    }
    return new ReadyLine(
        string(line, "bootstrap"),
        listeners,
        Long.parseLong(string(line, "pid")),
        Path.of(string(line, "dir")),
        Path.of(string(line, "log_dir")),
        nodes);
  }

  private static String string(JsonObject line, String name) {
    if (!line.has(name) || !line.get(name).isJsonPrimitive()) {
      throw new JsonParseException("no \"" + name + "\"");
    }
    return line.get(name).getAsString();
  }
}
