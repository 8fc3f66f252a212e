package dev.cipherlane.broker;

import java.io.IOException;
import java.util.Arrays;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;

/**
 * Which broker of its cluster this process is. A broker by itself is a cluster of one. The text
 * form is what a cluster's launcher gives each of its processes.
 *
 * @param id of the node, from 1
 * @param clusterId the same for all
 * @param controllers node to the port of its controller on 127.0.0.1, for all nodes
 */
record Member(int id, String clusterId, SortedMap<Integer, Integer> controllers) {
  /** The only broker of a new cluster. */
  static Member alone() throws IOException {
    return new Member(
        1, Uuid.randomUuid().toString(), new TreeMap<>(Map.of(1, FreePort.reserve())));
  }

  /**
   * Reads the text form.
   *
   * @throws IllegalArgumentException if it is none
   */
  static Member parse(String text) {
    String[] parts = text.split("/", -1);
    if (parts.length != 3) {
      throw new IllegalArgumentException("is not ID/CLUSTER/CONTROLLERS");
    }
    SortedMap<Integer, Integer> controllers = new TreeMap<>();
    for (String controller : parts[2].split(",", -1)) {
      String[] pair = controller.split("@", -1);
      controllers.put(Integer.valueOf(pair[0]), Integer.valueOf(pair[pair.length - 1]));
    }
    Member member = new Member(Integer.parseInt(parts[0]), parts[1], controllers);
    if (!controllers.containsKey(member.id)) {
      throw new IllegalArgumentException("has no controller for node " + member.id);
    }
    return member;
  }

  int controllerPort() {
    return controllers.get(id);
  }

  int size() {
    return controllers.size();
  }

  /** The value of Kafka's {@code controller.quorum.voters}. */
  String voters() {
    return controllers.entrySet().stream()
        .map(c -> c.getKey() + "@127.0.0.1:" + c.getValue())
        .collect(Collectors.joining(","));
  }

  @Override
  public String toString() {
    String ports = Arrays.toString(controllers.entrySet().toArray()).replace('=', '@');
    return id + "/" + clusterId + "/" + ports.replaceAll("[\\[\\] ]", "");
  }
}
