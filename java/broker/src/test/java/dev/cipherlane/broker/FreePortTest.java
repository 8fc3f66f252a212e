package dev.cipherlane.broker;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.channels.ServerSocketChannel;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

class FreePortTest {
  private static final InetAddress LOOPBACK = InetAddress.getLoopbackAddress();

  /** Binds as Kafka does: with a channel. */
  @Test
  void canBeBound() throws Exception {
    int port = FreePort.reserve();

    try (ServerSocketChannel channel = ServerSocketChannel.open()) {
      channel.bind(new InetSocketAddress(LOOPBACK, port));

      assertThat(channel.socket().getLocalPort()).isEqualTo(port);
    }
  }

  @Test
  void isGivenToNobodyElse() throws Exception {
    Set<Integer> reserved = new HashSet<>();
    for (int i = 0; i < 200; i++) {
      assertThat(reserved.add(FreePort.reserve())).isTrue();
    }
    List<ServerSocket> others = new ArrayList<>();
    try {
      for (int i = 0; i < 500; i++) {
        others.add(new ServerSocket(0, 1, LOOPBACK));
      }
      assertThat(others)
          .extracting(ServerSocket::getLocalPort)
          .doesNotContainAnyElementsOf(reserved);
    } finally {
      for (ServerSocket other : others) {
        other.close();
      }
    }
  }
}
