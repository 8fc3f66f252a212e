package dev.cipherlane.broker;

import java.io.IOException;
import java.util.Set;
import org.apache.kafka.common.security.auth.SecurityProtocol;

/**
 * A listener beside the one in plaintext.
 *
 * @param name in Kafka's settings; {@value #CONTROLLER} is the one that there is already
 * @param protocol how it is secured
 * @param port on 127.0.0.1, or 0 for a free one
 */
record Listener(String name, SecurityProtocol protocol, int port) {
  static final String PLAINTEXT = "PLAINTEXT";
  static final String CONTROLLER = "CONTROLLER";

  /**
   * Reads {@code NAME:PROTOCOL[:PORT]}.
   *
   * @throws IllegalArgumentException if it is not of this form; the message continues "'TEXT' "
   */
  static Listener parse(String text) {
    String[] parts = text.split(":", -1);
    if (parts.length < 2 || parts.length > 3 || !parts[0].matches("[A-Z][A-Z0-9_]{0,31}")) {
      throw new IllegalArgumentException("is not NAME:PROTOCOL, such as TLS:SSL");
    }
    if (parts[0].equals(PLAINTEXT)) {
      throw new IllegalArgumentException("has the name of the listener that is always there");
    }
    if (!Set.copyOf(SecurityProtocol.names()).contains(parts[1])) {
      throw new IllegalArgumentException(
          "has a protocol that is none of " + SecurityProtocol.names());
    }
    int port = parts.length == 2 ? 0 : port(parts[2]);
    return new Listener(parts[0], SecurityProtocol.forName(parts[1]), port);
  }

  private static int port(String text) {
    int port = text.matches("\\d{1,5}") ? Integer.parseInt(text) : 0;
    if (port < 1 || port > 65535) {
      throw new IllegalArgumentException("has a port that is not a number from 1 to 65535");
    }
    return port;
  }

  /** Clients connect to it; only other controllers and brokers do to the controller's. */
  boolean forClients() {
    return !name.equals(CONTROLLER);
  }

  /** The same on a port that is chosen. */
  Listener placed() throws IOException {
    return port != 0 || !forClients() ? this : new Listener(name, protocol, FreePort.reserve());
  }

  String address() {
    return "127.0.0.1:" + port;
  }

  @Override
  public String toString() {
    return name + ":" + protocol.name + (port == 0 ? "" : ":" + port);
  }
}
