// The properties by which the caller chooses a part of a benchmark of the transport.
package dev.cipherlane.benchmarks;

import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Each is a list with commas; one that is missing leaves everything. */
final class Choice {
  private static final List<String> PROPERTIES =
      List.of("operation", "size", "connections", "acks", "row", "bytes", "producer");

  private Choice() {}

  static boolean leaves(String property, Object value) {
    return !made(property) || values(property).contains(value.toString());
  }

  static boolean made(String property) {
    return !System.getProperty(property, "").isEmpty();
  }

  static List<String> values(String property) {
    return List.of(System.getProperty(property, "").split(","));
  }

  /** For the report: a part is never mistaken for the whole. */
  static Map<String, String> notes() {
    Map<String, String> notes = new TreeMap<>();
    notes.put("engine", System.getProperty("engine", "auto"));
    PROPERTIES.stream()
        .filter(Choice::made)
        .forEach(property -> notes.put("only_" + property, System.getProperty(property)));
    return notes;
  }
}
