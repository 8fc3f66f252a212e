package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLEngineResult.Status;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSessionContext;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Each engine against the JDK's as the peer, on both sides, with both versions of TLS. */
class EngineTest {
  private static final int WHOLE = 1 << 20;

  @BeforeAll
  static void boringSslIsHere() {
    assertThat(BoringSsl.loads()).isTrue();
  }

  static Stream<Arguments> sides() {
    return Stream.of(EngineKind.JDK, EngineKind.BORINGSSL)
        .flatMap(
            kind ->
                Stream.of("TLSv1.2", "TLSv1.3")
                    .flatMap(
                        protocol ->
                            Stream.of(
                                Arguments.of(kind, EngineKind.JDK_PLAIN, protocol),
                                Arguments.of(EngineKind.JDK_PLAIN, kind, protocol),
                                Arguments.of(kind, kind, protocol))));
  }

  /** A frame of Kafka with so many bytes in all. */
  private static byte[] frame(int size) {
    byte[] bytes = new byte[size];
    new Random(size).nextBytes(bytes);
    ByteBuffer.wrap(bytes).putInt(0, size - Integer.BYTES);
    return bytes;
  }

  @ParameterizedTest
  @MethodSource("sides")
  void carriesFramesOfEverySize(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    Pair pair = new Pair(client, server, protocol, WHOLE).handshake();
    for (int size : new int[] {4, 5, 100, 4095, 4097, 16_383, 16_384, 16_385, 40_000, 300_000}) {
      for (Pair.Side from : new Pair.Side[] {pair.client, pair.server}) {
        byte[] frame = frame(size);
        assertThat(pair.transfer(from, ByteBuffer.wrap(frame))).isEqualTo(frame);
        ByteBuffer direct = ByteBuffer.allocateDirect(size).put(frame).flip();
        assertThat(pair.transfer(from, direct)).as("from outside the heap").isEqualTo(frame);
      }
    }
    assertThat(pair.client.engine.getSession().getProtocol()).isEqualTo(protocol);
    assertThat(pair.server.engine.getSession().getPeerPrincipal().getName()).isEqualTo("CN=client");
  }

  /** Unless a full buffer is to grow, Kafka takes the overflow for a mistake of the engine. */
  @ParameterizedTest
  @CsvSource({"JDK, TLSv1.2", "JDK, TLSv1.3", "BORINGSSL, TLSv1.2", "BORINGSSL, TLSv1.3"})
  void asksForMoreRoomThanIsTaken(EngineKind kind, String protocol) throws Exception {
    Pair pair = new Pair(kind, kind, protocol, WHOLE).handshake();
    pair.send(pair.client, ByteBuffer.wrap(frame(1000)));
    ByteBuffer full =
        ByteBuffer.allocate(pair.server.engine.getSession().getApplicationBufferSize());
    full.position(full.capacity());
    SSLEngineResult result = pair.server.engine.unwrap(pair.server.received.flip(), full);
    assertThat(result.getStatus()).isEqualTo(Status.BUFFER_OVERFLOW);
    assertThat(pair.server.engine.getSession().getApplicationBufferSize())
        .isGreaterThan(full.position());
  }

  @ParameterizedTest
  @MethodSource("sides")
  void takesInputByteByByte(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    Pair pair = new Pair(client, server, protocol, 1).handshake();
    byte[] frame = frame(20_000);
    assertThat(pair.transfer(pair.client, ByteBuffer.wrap(frame))).isEqualTo(frame);
    assertThat(pair.transfer(pair.server, ByteBuffer.wrap(frame))).isEqualTo(frame);
  }

  @ParameterizedTest
  @MethodSource("sides")
  void survivesAnEndAtEveryStepOfTheHandshake(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    for (int steps = 0; steps < 12; steps++) {
      Pair pair = new Pair(client, server, protocol, WHOLE).begin();
      pair.steps(steps);
      close(pair.client);
      close(pair.server);
      assertThat(pair.client.engine.isOutboundDone()).as("step %d", steps).isTrue();
      assertThat(pair.server.engine.isOutboundDone()).as("step %d", steps).isTrue();
    }
  }

  /** As SslTransportLayer closes. */
  private static void close(Pair.Side side) throws SSLException {
    side.engine.closeOutbound();
    ByteBuffer out = ByteBuffer.allocate(side.engine.getSession().getPacketBufferSize());
    for (int i = 0; i < 5 && !side.engine.isOutboundDone(); i++) {
      side.engine.wrap(ByteBuffer.allocate(0), out.clear());
    }
    try {
      side.engine.closeInbound();
    } catch (SSLException e) {
      assertThat(e).hasMessageContaining("close_notify");
    }
  }

  @ParameterizedTest
  @MethodSource("sides")
  void keepsPartsOfOneFrameTogether(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    Pair pair = new Pair(client, server, protocol, WHOLE).handshake();
    if (client == EngineKind.JDK_PLAIN) {
      return;
    }
    byte[] frame = frame(200);
    SSLEngineResult header = pair.send(pair.client, ByteBuffer.wrap(frame, 0, 60));
    assertThat(header.bytesConsumed()).isEqualTo(60);
    assertThat(header.bytesProduced()).isZero();
    assertThat(pair.send(pair.client, ByteBuffer.wrap(frame, 60, 140)).bytesProduced())
        .isGreaterThan(200);
    pair.take(pair.server);
    assertThat(Pair.taken(pair.server)).isEqualTo(frame);
  }

  /** A request with a batch of Kafka's default size: what is before it, the batch, what follows. */
  @ParameterizedTest
  @MethodSource("sides")
  void sendsABatchWithWhatIsAroundItAtOnce(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    Pair pair = new Pair(client, server, protocol, WHOLE).handshake();
    if (client == EngineKind.JDK_PLAIN) {
      return;
    }
    for (int batch : new int[] {10_300, 16_384}) {
      byte[] frame = frame(100 + batch + 3);
      assertThat(pair.send(pair.client, ByteBuffer.wrap(frame, 0, 100)).bytesProduced()).isZero();
      assertThat(pair.sendAll(pair.client, ByteBuffer.wrap(frame, 100, batch))).isZero();
      pair.sendAll(pair.client, ByteBuffer.wrap(frame, 100 + batch, 3));
      pair.take(pair.server);
      assertThat(Pair.taken(pair.server)).isEqualTo(frame);
    }
  }

  /** A frame's last part for which there is no room is not taken: Kafka comes again with it. */
  @ParameterizedTest
  @MethodSource("sides")
  void leavesWhatHasNoRoom(EngineKind client, EngineKind server, String protocol) throws Exception {
    Pair pair = new Pair(client, server, protocol, WHOLE).handshake();
    int record = pair.client.engine.getSession().getPacketBufferSize();
    for (int kept : new int[] {CoalescingEngine.RECORD - 500, CoalescingEngine.RECORD + 500}) {
      byte[] frame = frame(kept + 1000);
      pair.sendAll(pair.client, ByteBuffer.wrap(frame, 0, kept));
      ByteBuffer last = ByteBuffer.wrap(frame, kept, 1000);
      for (int sent = 0; last.hasRemaining(); sent++) {
        assertThat(sent).isLessThan(3);
        int before = last.position();
        SSLEngineResult result =
            pair.send(pair.client, last, ByteBuffer.allocate(record + 1).position(1));
        assertThat(result.bytesConsumed()).isEqualTo(last.position() - before);
        assertThat(result.bytesProduced()).isPositive();
      }
      pair.take(pair.server);
      assertThat(Pair.taken(pair.server)).isEqualTo(frame);
    }
  }

  /** Many connections in the midst of a frame: what one keeps is never another's. */
  @ParameterizedTest
  @MethodSource("sides")
  void keepsThePartsOfManyConnectionsApart(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    List<Pair> pairs = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      pairs.add(new Pair(client, server, protocol, WHOLE).handshake());
    }
    for (int round = 0; round < 3; round++) {
      for (int part = 0; part < 3; part++) {
        for (int i = 0; i < pairs.size(); i++) {
          byte[] frame = frame(9000 + i + 100 * round);
          int at = part * 3000;
          ByteBuffer bytes = ByteBuffer.wrap(frame, at, part < 2 ? 3000 : frame.length - at);
          pairs.get(i).sendAll(pairs.get(i).client, bytes);
        }
      }
      for (int i = 0; i < pairs.size(); i++) {
        pairs.get(i).take(pairs.get(i).server);
        assertThat(Pair.taken(pairs.get(i).server)).isEqualTo(frame(9000 + i + 100 * round));
      }
    }
  }

  /** A part that is too long to be kept goes out, in order, with what was kept before it. */
  @ParameterizedTest
  @MethodSource("sides")
  void keepsNoMoreThanItsLimit(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    Pair pair = new Pair(client, server, protocol, WHOLE).handshake();
    byte[] frame = frame(4 * CoalescingEngine.KEPT_LIMIT);
    int portion = CoalescingEngine.KEPT_LIMIT / 2 + 1;
    int produced = 0;
    for (int at = 0; at < frame.length; at += portion) {
      ByteBuffer part = ByteBuffer.wrap(frame, at, Math.min(portion, frame.length - at));
      produced += pair.sendAll(pair.client, part);
      int sent = Math.min(at + portion, frame.length);
      assertThat(produced).isGreaterThanOrEqualTo(sent - CoalescingEngine.KEPT_LIMIT);
    }
    pair.take(pair.server);
    assertThat(Pair.taken(pair.server)).isEqualTo(frame);
  }

  @ParameterizedTest
  @MethodSource("sides")
  void sendsAtOnceWhatIsNoFrame(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    Pair pair = new Pair(client, server, protocol, WHOLE).handshake();
    byte[] text = {-1, 'n', 'o', ' ', 'f', 'r', 'a', 'm', 'e'};
    assertThat(pair.transfer(pair.client, ByteBuffer.wrap(text))).isEqualTo(text);
    assertThat(pair.transfer(pair.client, ByteBuffer.wrap(text))).isEqualTo(text);
  }

  @ParameterizedTest
  @MethodSource("sides")
  void makesAndTakesManyRecordsAtOnce(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    Pair pair = new Pair(client, server, protocol, WHOLE).handshake();
    byte[] frame = frame(60_000);
    ByteBuffer src = ByteBuffer.wrap(frame);
    int wraps = 0;
    while (src.hasRemaining()) {
      wraps += pair.send(pair.client, src).bytesConsumed() > 0 ? 1 : 0;
    }
    int unwraps = 0;
    while (pair.server.received.position() > 0) {
      unwraps += pair.server.unwrap().bytesConsumed() > 0 ? 1 : 0;
    }
    assertThat(wraps).isEqualTo(client == EngineKind.JDK_PLAIN ? 4 : 1);
    assertThat(unwraps).isEqualTo(server == EngineKind.JDK_PLAIN ? 4 : 1);
    assertThat(Pair.taken(pair.server)).isEqualTo(frame);
  }

  @ParameterizedTest
  @MethodSource("sides")
  void goesOnSendingAfterThePeerHasClosedItsHalf(
      EngineKind client, EngineKind server, String protocol) throws Exception {
    if (!protocol.equals("TLSv1.3") || server == EngineKind.BORINGSSL) {
      return; // Netty answers a close_notify with its own
    }
    Pair pair = new Pair(client, server, protocol, WHOLE).handshake();
    pair.transfer(pair.server, ByteBuffer.wrap(frame(100)));
    pair.client.engine.closeOutbound();
    pair.send(pair.client, ByteBuffer.allocate(0));
    assertThat(pair.server.unwrap().getStatus()).isEqualTo(Status.CLOSED);
    for (int size : new int[] {100, 40_000}) {
      ByteBuffer src = ByteBuffer.wrap(frame(size));
      while (src.hasRemaining()) {
        assertThat(pair.send(pair.server, src).getStatus()).isNotEqualTo(Status.CLOSED);
      }
      if (client != EngineKind.BORINGSSL) { // reads nothing once it has closed its half
        pair.take(pair.client);
        assertThat(Pair.taken(pair.client)).isEqualTo(frame(size));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("sides")
  void deliversWhatCameBeforeTheEnd(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    Pair pair = new Pair(client, server, protocol, WHOLE).handshake();
    byte[] frame = frame(100);
    pair.send(pair.client, ByteBuffer.wrap(frame));
    pair.client.engine.closeOutbound();
    pair.send(pair.client, ByteBuffer.allocate(0));
    SSLEngineResult data = pair.server.unwrap();
    assertThat(data.getStatus()).isEqualTo(Status.OK);
    assertThat(data.getHandshakeStatus()).isEqualTo(HandshakeStatus.NOT_HANDSHAKING);
    pair.take(pair.server);
    assertThat(Pair.taken(pair.server)).isEqualTo(frame);
    assertThat(pair.server.unwrap().getStatus()).isEqualTo(Status.CLOSED);
  }

  @ParameterizedTest
  @MethodSource("sides")
  void deliversWhatCameBeforeABadRecord(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    Pair pair = new Pair(client, server, protocol, WHOLE).handshake();
    byte[] frame = frame(100);
    pair.send(pair.client, ByteBuffer.wrap(frame));
    int good = pair.server.received.position();
    pair.send(pair.client, ByteBuffer.wrap(frame));
    int bad = pair.server.received.position() - 1;
    assertThat(bad).isGreaterThan(good);
    pair.server.received.put(bad, (byte) ~pair.server.received.get(bad));
    assertThat(pair.server.unwrap().bytesProduced()).isEqualTo(100);
    assertThat(Pair.taken(pair.server)).isEqualTo(frame);
    assertThatThrownBy(pair.server::unwrap).isInstanceOf(SSLException.class);
  }

  @ParameterizedTest
  @MethodSource("sides")
  void saysWhatKafkaReadsWhenThePeerSpeaksNoTls(
      EngineKind client, EngineKind server, String protocol) throws Exception {
    if (server == EngineKind.JDK_PLAIN) {
      return;
    }
    Pair pair = new Pair(client, server, protocol, WHOLE).begin();
    pair.server.received.put("GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
    assertThatThrownBy(() -> pair.steps(3))
        .isInstanceOf(SSLException.class)
        .hasMessageContaining("Unrecognized SSL message");
  }

  /** A resumed session is one for which nobody verifies a certificate again. */
  @ParameterizedTest
  @MethodSource("sides")
  void resumesSessions(EngineKind client, EngineKind server, String protocol) throws Exception {
    CountingTrust byClients = new CountingTrust(Pair.CLIENT.trustManager());
    CountingTrust byServers = new CountingTrust(Pair.SERVER.trustManager());
    try (TlsEngines clients = TlsEngines.create(Pair.CLIENT.keyManager(), byClients, client);
        TlsEngines servers = TlsEngines.create(Pair.SERVER.keyManager(), byServers, server)) {
      for (int i = 0; i < 3; i++) {
        carryOneFrameEach(new Pair(clients, servers, protocol, WHOLE).handshake());
      }
      assertThat(byClients.checks()).as("a server was verified").isEqualTo(1);
      assertThat(byServers.checks()).as("a client was verified").isEqualTo(1);
    }
  }

  /** Of peers without number, as of connections: each leaves a session, which would add up. */
  @Test
  void keepsFewSessions() throws Exception {
    try (TlsEngines clients = Pair.CLIENT.engines(EngineKind.JDK);
        TlsEngines servers = Pair.SERVER.engines(EngineKind.JDK)) {
      SSLSessionContext kept = null;
      for (int i = 0; i < JdkSource.CLIENT_SESSIONS + 50; i++) {
        SSLEngine client = clients.client("127.0.0.1", 10_000 + i, Pair.parameters("TLSv1.3"));
        carryOneFrameEach(new Pair(client, Pair.server(servers, "TLSv1.3"), WHOLE).handshake());
        kept = client.getSession().getSessionContext();
      }
      assertThat(Collections.list(kept.getIds())).hasSize(JdkSource.CLIENT_SESSIONS);
    }
  }

  /** A session of another certificate is none: a renewed one must be seen. */
  @ParameterizedTest
  @MethodSource("sides")
  void resumesNoSessionOfAnotherMaker(EngineKind client, EngineKind server, String protocol)
      throws Exception {
    CountingTrust byServers = new CountingTrust(Pair.SERVER.trustManager());
    try (TlsEngines servers = TlsEngines.create(Pair.SERVER.keyManager(), byServers, server)) {
      for (int i = 0; i < 2; i++) {
        try (TlsEngines clients = Pair.CLIENT.engines(client)) {
          carryOneFrameEach(new Pair(clients, servers, protocol, WHOLE).handshake());
        }
      }
      assertThat(byServers.checks()).isEqualTo(2);
    }
  }

  static void carryOneFrameEach(Pair pair) throws SSLException {
    byte[] frame = frame(50);
    assertThat(pair.transfer(pair.server, ByteBuffer.wrap(frame))).isEqualTo(frame);
    assertThat(pair.transfer(pair.client, ByteBuffer.wrap(frame))).isEqualTo(frame);
    assertThat(pair.server.engine.getSession().getPeerPrincipal().getName()).isEqualTo("CN=client");
    close(pair.client);
    close(pair.server);
  }

  @ParameterizedTest
  @MethodSource("sides")
  void answersAfterItsEnd(EngineKind client, EngineKind server, String protocol) throws Exception {
    Pair pair = new Pair(client, server, protocol, WHOLE).handshake();
    for (Pair.Side side : new Pair.Side[] {pair.client, pair.server}) {
      close(side);
      assertThatCode(() -> side.engine.getSession().getPacketBufferSize())
          .doesNotThrowAnyException();
      assertThat(
              side.engine.wrap(ByteBuffer.wrap(frame(10)), ByteBuffer.allocate(40_000)).getStatus())
          .isEqualTo(Status.CLOSED);
      assertThat(side.engine.isOutboundDone()).isTrue();
    }
  }
}
