package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import javax.net.ssl.SSLEngine;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Kafka's own {@code SslTransportLayer} over each engine: its loops must end, its buffers fit, and
 * every byte arrive. Run with each version of kafka-clients.
 */
@Timeout(
    value = 60,
    threadMode = Timeout.ThreadMode.SEPARATE_THREAD) // a loop of Kafka's heeds no interrupt
class TransportLayerTest {
  private static final long SEED = 4_243;

  static Stream<Arguments> sides() {
    return EngineTest.sides();
  }

  private static Channels channels(EngineKind client, EngineKind server, String protocol)
      throws IOException {
    return new Channels(
        Pair.client(Pair.CLIENT.engines(client), protocol),
        Pair.server(Pair.SERVER.engines(server), protocol));
  }

  private static byte[] frame(int size) {
    byte[] bytes = new byte[size];
    new Random(size).nextBytes(bytes);
    ByteBuffer.wrap(bytes).putInt(0, size - Integer.BYTES);
    return bytes;
  }

  @ParameterizedTest
  @MethodSource("sides")
  void carriesFramesInPartsAsKafkaSendsThem(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    try (Channels channels = channels(client, server, protocol).handshake()) {
      for (int size : new int[] {80, 16_300, 16_384, 17_000, 50_000, 131_072, 600_000}) {
        check(channels.client, channels.server, frame(size));
        check(channels.server, channels.client, frame(size));
      }
    }
  }

  /** The size, a header and the records, with buffers of random sizes at the other end. */
  private static void check(Channels.End from, Channels.End to, byte[] frame) throws Exception {
    int header = Math.min(70, frame.length - 1);
    ByteBuffer[] parts = {
      ByteBuffer.wrap(frame, 0, 4),
      ByteBuffer.wrap(frame, 4, header - 4),
      ByteBuffer.wrap(frame, header, frame.length - header)
    };
    CompletableFuture<byte[]> read = CompletableFuture.supplyAsync(() -> read(to, frame.length));
    while (parts[2].hasRemaining() || from.layer.hasPendingWrites()) {
      if (from.layer.write(parts) == 0) {
        Thread.sleep(1);
      }
    }
    assertThat(read.get()).isEqualTo(frame);
  }

  private static byte[] read(Channels.End from, int size) {
    Random random = new Random(SEED + size);
    ByteBuffer all = ByteBuffer.allocate(size);
    try {
      while (all.hasRemaining()) {
        int most = random.nextInt(4) == 0 ? 4 : 1 + random.nextInt(200_000);
        ByteBuffer dst = ByteBuffer.allocate(Math.min(most, all.remaining()));
        if (from.layer.read(dst) == 0 && !from.layer.hasBytesBuffered()) {
          from.selector.select(50);
          from.selector.selectedKeys().clear();
        }
        all.put(dst.flip());
      }
      return all.array();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  /** As a broker sends what it has stored. */
  @ParameterizedTest
  @MethodSource("sides")
  void carriesFiles(EngineKind client, EngineKind server, String protocol, @TempDir Path folder)
      throws Exception {
    byte[] frame = frame(300_000);
    Path file = Files.write(folder.resolve("segment"), frame);
    try (Channels channels = channels(client, server, protocol).handshake();
        FileChannel stored = FileChannel.open(file)) {
      makeReady(channels);
      CompletableFuture<byte[]> read =
          CompletableFuture.supplyAsync(() -> read(channels.client, frame.length));
      long at = 0;
      while (at < frame.length || channels.server.layer.hasPendingWrites()) {
        long sent = channels.server.layer.transferFrom(stored, at, frame.length - at);
        at += sent;
        if (sent == 0) {
          Thread.sleep(1);
        }
      }
      assertThat(read.get()).isEqualTo(frame);
    }
  }

  /** A server transfers files only once it has read something. */
  private static void makeReady(Channels channels) throws Exception {
    check(channels.client, channels.server, frame(100));
  }

  /**
   * Records that fill Kafka's buffer for plaintext to the last byte, and one more, while the reader
   * has no room: Kafka takes an overflow then for a mistake of the engine.
   */
  @ParameterizedTest
  @MethodSource("sides")
  void fillsTheReadersBufferExactly(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    SSLEngine reader = Pair.server(Pair.SERVER.engines(server), protocol);
    int size = reader.getSession().getApplicationBufferSize();
    try (Channels channels =
        new Channels(Pair.client(Pair.CLIENT.engines(client), protocol), reader).handshake()) {
      for (int parts : new int[] {1, 2, 4, 8}) {
        // Each frame is a record; the first is what the reader has room for.
        ByteBuffer sent = ByteBuffer.allocate(4 + size + 100);
        write(channels.client, sent, 4);
        for (int i = 0; i < parts; i++) {
          write(channels.client, sent, size / parts);
        }
        write(channels.client, sent, 100);
        ByteBuffer received = ByteBuffer.allocate(sent.capacity());
        received.put(read(channels.server, 4)).put(read(channels.server, size + 100));
        assertThat(received.array()).as("%d parts", parts).isEqualTo(sent.array());
      }
    }
  }

  private static void write(Channels.End from, ByteBuffer sent, int size) throws IOException {
    byte[] frame = frame(size);
    sent.put(frame);
    ByteBuffer src = ByteBuffer.wrap(frame);
    while (src.hasRemaining() || from.layer.hasPendingWrites()) {
      from.layer.write(src);
    }
  }

  /**
   * It must be seen, at once, and not be taken for a failed authentication, after which Kafka gives
   * up.
   */
  @ParameterizedTest
  @MethodSource("sides")
  void seesAPeerGoAtAnyStepOfTheHandshake(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    try (TlsEngines clients = Pair.CLIENT.engines(client);
        TlsEngines servers = Pair.SERVER.engines(server)) {
      for (int steps = 0; steps < 8; steps++) {
        for (boolean clientGoes : new boolean[] {true, false}) {
          Channels channels =
              new Channels(Pair.client(clients, protocol), Pair.server(servers, protocol));
          for (int i = 0; i < steps; i++) {
            channels.step();
          }
          Channels.End stays = clientGoes ? channels.server : channels.client;
          (clientGoes ? channels.client : channels.server).socket.close();
          assertThatThrownBy(() -> readToTheEnd(stays))
              .as("after step %d of the %s", steps, clientGoes ? "client" : "server")
              .isInstanceOf(IOException.class);
          channels.close();
        }
      }
    }
  }

  private static void readToTheEnd(Channels.End end) throws IOException {
    ByteBuffer one = ByteBuffer.allocate(1);
    for (int i = 0; i < 1000; i++) {
      if (end.handshake() && end.layer.read(one) < 0) {
        throw new EOFException();
      }
    }
  }

  @ParameterizedTest
  @MethodSource("sides")
  void growsBuffersOnlyWithUse(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    if (client == EngineKind.JDK_PLAIN) {
      return;
    }
    SSLEngine engine = Pair.client(Pair.CLIENT.engines(client), protocol);
    try (Channels channels =
        new Channels(engine, Pair.server(Pair.SERVER.engines(server), protocol)).handshake()) {
      int idle = engine.getSession().getPacketBufferSize();
      assertThat(idle).isLessThan(20_000);
      for (int i = 0; i < 20; i++) {
        check(channels.client, channels.server, frame(500));
        check(channels.server, channels.client, frame(500));
      }
      assertThat(engine.getSession().getPacketBufferSize()).isEqualTo(idle);
      check(channels.server, channels.client, frame(600_000));
      assertThat(engine.getSession().getPacketBufferSize())
          .isEqualTo(CoalescingEngine.READ_LIMIT * idle);
    }
  }
}
