package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * TLS 1.3 peers that change their keys while both sides send, through Kafka's own {@code
 * SslTransportLayer}. The JDK's engines do so after the bytes of {@code key-updates.security}, and
 * ask the peer to do the same.
 */
@Timeout(30)
class KeyUpdateTest {
  private static final int FRAME = 50_000; // its last record is no short one
  private static final int FRAMES = 60;
  private static final int LIMIT = 1 << 19;

  /**
   * Frames that a side sends before it has one: until it has its answer, the JDK's engine asks with
   * each record that it reads, and BoringSSL hangs up on 32 in a row.
   */
  private static final int AHEAD = 2;

  /** One side at least is the JDK's: BoringSSL never begins. */
  static Stream<Arguments> sides() {
    return EngineTest.sides()
        .filter(sides -> sides.get()[2].equals("TLSv1.3"))
        .filter(sides -> sides.get()[0] != sides.get()[1] || sides.get()[0] == EngineKind.JDK);
  }

  @ParameterizedTest
  @MethodSource("sides")
  void nothingIsLostWhileKeysChange(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    KeyUpdateCounter clients =
        new KeyUpdateCounter(Pair.client(Pair.CLIENT.engines(client), protocol));
    KeyUpdateCounter servers =
        new KeyUpdateCounter(Pair.server(Pair.SERVER.engines(server), protocol));
    try (Channels channels = new Channels(clients, servers).handshake()) {
      byte[] request = frames(1);
      byte[] response = frames(2);
      CompletableFuture<byte[]> atServer =
          CompletableFuture.supplyAsync(() -> exchange(channels.server, response, request.length));
      CompletableFuture<byte[]> atClient =
          CompletableFuture.supplyAsync(() -> exchange(channels.client, request, response.length));
      assertThat(atClient.get()).isEqualTo(response);
      assertThat(atServer.get()).isEqualTo(request);
    }
    // Who is asked answers once before he sends on, however often he was asked meanwhile.
    int least = FRAMES * FRAME / LIMIT / 2;
    assertThat(clients.sent()).as("of the client").isGreaterThanOrEqualTo(least);
    assertThat(servers.sent()).as("of the server").isGreaterThanOrEqualTo(least);
  }

  private static byte[] frames(int seed) {
    byte[] bytes = new byte[FRAMES * FRAME];
    new Random(seed).nextBytes(bytes);
    for (int at = 0; at < bytes.length; at += FRAME) {
      ByteBuffer.wrap(bytes).putInt(at, FRAME - Integer.BYTES);
    }
    return bytes;
  }

  /** Sends all and reads all, in one thread and in turn, as Kafka's selector does. */
  private static byte[] exchange(Channels.End end, byte[] sent, int expected) {
    ByteBuffer out = ByteBuffer.wrap(sent).limit(0);
    ByteBuffer in = ByteBuffer.allocate(expected);
    try {
      while (out.position() < sent.length || end.layer.hasPendingWrites() || in.hasRemaining()) {
        if (!out.hasRemaining() && out.position() < in.position() + AHEAD * FRAME) {
          out.limit(Math.min(sent.length, out.limit() + FRAME));
        }
        if (end.layer.write(out) + read(end, in) == 0) {
          end.selector.select(1);
          end.selector.selectedKeys().clear();
        }
      }
      return in.array();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private static long read(Channels.End end, ByteBuffer in) throws IOException {
    return in.hasRemaining() ? end.layer.read(in) : 0;
  }
}
