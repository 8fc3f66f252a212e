package dev.cipherlane.broker;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** Finds a port of the loopback interface that stays free until Kafka binds it. */
final class FreePort {
  private FreePort() {}

  /**
   * Reserves a port for about a minute.
   *
   * <p>A port that was only bound and closed may go to any other program before Kafka binds it. One
   * whose first connection the server's side has closed lingers in TIME_WAIT: on Linux the system
   * gives it to nobody who asks for just any port, while Kafka, which asks for this one with
   * SO_REUSEADDR, gets it.
   *
   * @return the port
   * @throws IOException if there is none
   */
  static int reserve() throws IOException {
    InetAddress loopback = InetAddress.getByAddress(new byte[] {127, 0, 0, 1});
    try (ServerSocket server = new ServerSocket(0, 1, loopback);
        Socket client = new Socket(loopback, server.getLocalPort())) {
      server.accept().close(); // before the client's side, so that TIME_WAIT is on this one
      return client.getPort();
    }
  }
}
