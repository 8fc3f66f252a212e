package dev.cipherlane.broker;

import com.fasterxml.jackson.annotation.JsonInclude;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.util.List;
import java.util.Map;

/**
 * The line of JSON that says that a broker, or a cluster, answers clients.
 *
 * @param node of a broker in a cluster, null for a broker by itself and for a whole cluster
 * @param bootstrap addresses of the listeners in plaintext, separated by commas
 * @param listeners name to addresses, of the other listeners for clients; empty if there are none
 * @param pid of the process
 * @param dir its folder
 * @param logDir where the records are, anywhere below
 * @param nodes of a cluster; empty for one broker
 */
@JsonPropertyOrder({"node", "bootstrap", "listeners", "pid", "dir", "log_dir", "nodes"})
record Ready(
    @JsonInclude(JsonInclude.Include.NON_NULL) Integer node,
    String bootstrap,
    @JsonInclude(JsonInclude.Include.NON_EMPTY) Map<String, String> listeners,
    long pid,
    String dir,
    @JsonProperty("log_dir") String logDir,
    @JsonInclude(JsonInclude.Include.NON_EMPTY) List<Ready> nodes) {
  // ASCII only: the reader need not know this process's character set.
  private static final JsonMapper JSON =
      JsonMapper.builder().enable(JsonWriteFeature.ESCAPE_NON_ASCII).build();

  /** What a line leaves out is empty. */
  Ready {
    listeners = listeners == null ? Map.of() : listeners;
    nodes = nodes == null ? List.of() : nodes;
  }

  static Ready parse(String line) throws IOException {
    return JSON.readValue(line, Ready.class);
  }

  /** The line in its place when a node does not start. */
  static String error(String message) {
    return JSON.createObjectNode().put("error", message).toString();
  }

  String line() throws IOException {
    return JSON.writeValueAsString(this);
  }
}
