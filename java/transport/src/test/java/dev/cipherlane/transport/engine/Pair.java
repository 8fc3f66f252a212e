package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.keyservice.TestCertificates;
import java.nio.ByteBuffer;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;

/** Two engines in one thread, and the bytes on their way between them. */
final class Pair {
  private static final TestCertificates AUTHORITY = TestCertificates.create();
  static final Keys SERVER = Keys.of(AUTHORITY, AUTHORITY.server("127.0.0.1"));
  static final Keys CLIENT = Keys.of(AUTHORITY, AUTHORITY.client("EC"));
  private static final int BIG = 1 << 20;
  private static final int STEPS = 20_000;

  /** One engine, what it received and has not yet taken, and the plaintext that it took. */
  static final class Side {
    final SSLEngine engine;
    final ByteBuffer received = ByteBuffer.allocate(BIG);
    final ByteBuffer plaintext = ByteBuffer.allocate(BIG);

    Side(SSLEngine engine) {
      this.engine = engine;
    }

    SSLEngineResult unwrap() throws SSLException {
      received.flip();
      try {
        return engine.unwrap(received, plaintext);
      } finally {
        received.compact();
      }
    }
  }

  final Side client;
  final Side server;
  private final int portion;

  /** Takes the most bytes that travel at once. */
  Pair(EngineKind client, EngineKind server, String protocol, int portion) {
    this(CLIENT.engines(client), SERVER.engines(server), protocol, portion);
  }

  Pair(TlsEngines clients, TlsEngines servers, String protocol, int portion) {
    this(client(clients, protocol), server(servers, protocol), portion);
  }

  Pair(SSLEngine client, SSLEngine server, int portion) {
    this.portion = portion;
    this.client = new Side(client);
    this.server = new Side(server);
  }

  /** As a client makes it that checks the name of its server. */
  static SSLEngine client(TlsEngines engines, String protocol) {
    return engines.client("127.0.0.1", 9092, parameters(protocol));
  }

  /** As a server makes it that demands a certificate. */
  static SSLEngine server(TlsEngines engines, String protocol) {
    SSLParameters parameters = new SSLParameters(null, new String[] {protocol});
    parameters.setNeedClientAuth(true);
    return engines.server("127.0.0.1", 40_000, parameters);
  }

  static SSLParameters parameters(String protocol) {
    SSLParameters parameters = new SSLParameters(null, new String[] {protocol});
    parameters.setEndpointIdentificationAlgorithm("HTTPS");
    return parameters;
  }

  Side peerOf(Side side) {
    return side == client ? server : client;
  }

  Pair begin() throws SSLException {
    client.engine.beginHandshake();
    server.engine.beginHandshake();
    return this;
  }

  Pair handshake() throws SSLException {
    begin();
    assertThat(steps(STEPS)).as("the handshake ends").isTrue();
    return this;
  }

  /** Takes so many steps of the handshake, or fewer if it ends before; tells whether it did. */
  boolean steps(int count) throws SSLException {
    for (int i = 0; i < count; i++) {
      boolean clientMoved = step(client);
      boolean moved = step(server) || clientMoved;
      if (!moved && done(client) && done(server)) {
        return true;
      }
    }
    return false;
  }

  private static boolean done(Side side) {
    return side.engine.getHandshakeStatus() == HandshakeStatus.NOT_HANDSHAKING;
  }

  /** What Kafka does once: a task, a wrap or an unwrap. Tells whether something moved. */
  private boolean step(Side side) throws SSLException {
    switch (side.engine.getHandshakeStatus()) {
      case NEED_TASK -> {
        side.engine.getDelegatedTask().run();
        return true;
      }
      case NEED_WRAP -> {
        return send(side, ByteBuffer.allocate(0)).bytesProduced() > 0;
      }
      default -> {
        return side.received.position() > 0 && side.unwrap().bytesConsumed() > 0;
      }
    }
  }

  /** Wraps once, and lets the bytes travel; in portions, each of which the peer may take. */
  SSLEngineResult send(Side from, ByteBuffer src) throws SSLException {
    return send(from, src, ByteBuffer.allocate(from.engine.getSession().getPacketBufferSize()));
  }

  /** Sends all, which the other side has not taken then. Returns how many bytes that made. */
  int sendAll(Side from, ByteBuffer src) throws SSLException {
    int produced = 0;
    while (src.hasRemaining()) {
      produced += send(from, src).bytesProduced();
    }
    return produced;
  }

  /** Wraps into the rest of a buffer. */
  SSLEngineResult send(Side from, ByteBuffer src, ByteBuffer out) throws SSLException {
    int start = out.position();
    SSLEngineResult result = from.engine.wrap(src, out);
    out.limit(out.position()).position(start);
    Side to = peerOf(from);
    while (out.hasRemaining()) {
      int n = Math.min(portion, out.remaining());
      to.received.put(out.slice(out.position(), n));
      out.position(out.position() + n);
      if (out.hasRemaining() && to.engine.getHandshakeStatus() != HandshakeStatus.NEED_WRAP) {
        to.unwrap();
      }
    }
    return result;
  }

  /** Sends all, and takes all. Returns what the other side has taken since the last time. */
  byte[] transfer(Side from, ByteBuffer src) throws SSLException {
    while (src.hasRemaining()) {
      assertThat(send(from, src).getStatus())
          .isIn(SSLEngineResult.Status.OK, SSLEngineResult.Status.BUFFER_OVERFLOW);
      take(peerOf(from));
    }
    return taken(peerOf(from));
  }

  void take(Side side) throws SSLException {
    SSLEngineResult result;
    do {
      result = side.unwrap();
    } while (result.bytesConsumed() > 0
        || (result.getStatus() == SSLEngineResult.Status.BUFFER_OVERFLOW
            && side.plaintext.hasRemaining()));
  }

  static byte[] taken(Side side) {
    side.plaintext.flip();
    byte[] bytes = new byte[side.plaintext.remaining()];
    side.plaintext.get(bytes);
    side.plaintext.clear();
    return bytes;
  }
}
