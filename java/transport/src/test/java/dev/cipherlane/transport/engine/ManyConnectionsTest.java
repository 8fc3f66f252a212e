package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;

import io.netty.util.IllegalReferenceCountException;
import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import javax.net.ssl.SSLParameters;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Connects and closes, in good order, in mid-handshake and by reset, and holds memory against what
 * it was: {@code make soak-transport} with 10,000 connections, {@code make test} with a few.
 */
@Timeout(1200)
class ManyConnectionsTest {
  private static final int CONNECTIONS = Integer.getInteger("connections", 300);
  private static final long ALLOWED = 24L << 20;

  @ParameterizedTest
  @EnumSource(names = {"JDK", "BORINGSSL"})
  void takeNoMemoryWithThem(EngineKind kind) throws Exception {
    try (TlsEngines clients = Pair.CLIENT.engines(kind);
        TlsEngines servers = Pair.SERVER.engines(kind)) {
      connect(clients, servers, CONNECTIONS / 2);
      long heap = heap();
      long resident = resident();
      connect(clients, servers, CONNECTIONS);
      System.err.printf(
          "%s: %d connections, heap %+d KiB, resident %+d KiB%n",
          kind, CONNECTIONS, (heap() - heap) >> 10, (resident() - resident) >> 10);
      assertThat(heap() - heap).as("heap").isLessThan(ALLOWED / 4);
      // The JDK's engines live on the heap; what else a young Java machine takes is not theirs.
      if (kind == EngineKind.BORINGSSL) {
        assertThat(resident() - resident).as("resident memory").isLessThan(ALLOWED);
      }
    }
  }

  /** An engine keeps alive what made it, so that is free once each is, however it ended. */
  @Test
  void freeAllNativeMemory() throws Exception {
    TlsEngines clients = Pair.CLIENT.engines(EngineKind.BORINGSSL);
    TlsEngines servers = Pair.SERVER.engines(EngineKind.BORINGSSL);
    connect(clients, servers, 40);
    clients.close();
    servers.close();
    for (TlsEngines each : List.of(clients, servers)) {
      for (int i = 0; i < 20 && !freed(each); i++) {
        heap();
      }
      assertThat(freed(each)).isTrue();
    }
  }

  private static boolean freed(TlsEngines engines) {
    try {
      return engines.server("127.0.0.1", 40_000, new SSLParameters()) == null;
    } catch (IllegalReferenceCountException e) {
      return true;
    }
  }

  private static void connect(TlsEngines clients, TlsEngines servers, int count)
      throws IOException {
    SSLParameters needed = new SSLParameters();
    needed.setNeedClientAuth(true);
    for (int i = 0; i < count; i++) {
      try (Channels channels =
          new Channels(
              Pair.client(clients, "TLSv1.3"), servers.server("127.0.0.1", 40_000, needed))) {
        end(channels, i % 4, i);
      }
    }
  }

  private static void end(Channels channels, int how, int i) throws IOException {
    if (how == 0) {
      for (int step = 0; step < i % 9; step++) {
        channels.client.handshake();
        channels.server.handshake();
      }
      return;
    }
    channels.handshake();
    if (how == 1) {
      channels.client.layer.write(ByteBuffer.allocate(100_000));
    } else if (how == 2) {
      channels.client.socket.setOption(StandardSocketOptions.SO_LINGER, 0);
      channels.client.socket.close();
    }
  }

  private static long heap() throws InterruptedException {
    for (int i = 0; i < 3; i++) {
      System.gc();
      Thread.sleep(100); // for the cleaner
    }
    Runtime runtime = Runtime.getRuntime();
    return runtime.totalMemory() - runtime.freeMemory();
  }

  private static long resident() throws IOException {
    String[] pages = Files.readString(Path.of("/proc/self/statm")).split(" ", 3);
    return Long.parseLong(pages[1]) * 4096;
  }
}
