package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.identity.TlsFiles;
import dev.cipherlane.keyservice.TestCertificates;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Peers of other makes change their keys: OpenSSL when it is told to, Go when the other side asks.
 */
@Timeout(60)
class PeerKeyUpdateTest {
  private static final String TLS = "TLSv1.3";
  private static final int ROUNDS = 5;
  private static final int LIMIT = 1 << 19; // of key-updates.security

  @TempDir static Path clientFolder;
  @TempDir static Path serverFolder;
  @TempDir static Path goFolder;
  private static Keys clientKeys;
  private static Keys serverKeys;
  private static TlsFiles clientFiles;
  private static TlsFiles serverFiles;
  private static Path goProgram;

  @BeforeAll
  static void issue() throws Exception {
    LinePeer.mustBeInstalled("openssl");
    LinePeer.mustBeInstalled("go");
    goProgram = GoPeer.build(goFolder);
    TestCertificates authority = TestCertificates.create();
    TestCertificates.Identity client = authority.client("EC");
    TestCertificates.Identity server = authority.server("127.0.0.1");
    clientKeys = Keys.of(authority, client);
    serverKeys = Keys.of(authority, server);
    clientFiles = authority.files(clientFolder, client);
    serverFiles = authority.files(serverFolder, server);
  }

  /** What a peer is made of. */
  enum Make {
    OPENSSL,
    GO;

    LinePeer client(int port) throws IOException {
      return this == OPENSSL
          ? OpenSsl.client(clientFiles, port)
          : GoPeer.client(goProgram, clientFiles, port);
    }

    LinePeer server() throws IOException {
      return this == OPENSSL ? OpenSsl.server(serverFiles) : GoPeer.server(goProgram, serverFiles);
    }
  }

  /** A connection of Kafka's transport layer to a peer. */
  private static final class Link implements AutoCloseable {
    final LinePeer peer;
    final KeyUpdateCounter engine;
    private final Channels.End end;
    private int changes;

    private Link(LinePeer peer, KeyUpdateCounter engine, SocketChannel socket) throws IOException {
      this.peer = peer;
      this.engine = engine;
      this.end = new Channels.End(socket, engine);
      while (!end.handshake()) {
        // The test's timeout ends this.
      }
      // With its first data BoringSSL sends session tickets, which a KeyUpdate could hide among.
      carryALineEach("the first line");
    }

    static Link of(EngineKind kind, boolean client, Make make) throws IOException {
      return client ? client(kind, make) : server(kind, make);
    }

    private static Link client(EngineKind kind, Make make) throws IOException {
      LinePeer peer = make.server();
      var address = new InetSocketAddress(InetAddress.getLoopbackAddress(), peer.port());
      var engine = new KeyUpdateCounter(Pair.client(clientKeys.engines(kind), TLS));
      return new Link(peer, engine, SocketChannel.open(address));
    }

    private static Link server(EngineKind kind, Make make) throws IOException {
      try (ServerSocketChannel listener = ServerSocketChannel.open()) {
        listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
        LinePeer peer = make.client(listener.socket().getLocalPort());
        var engine = new KeyUpdateCounter(Pair.server(serverKeys.engines(kind), TLS));
        return new Link(peer, engine, listener.accept());
      }
    }

    /** Sends text in a frame of Kafka. */
    void send(String text) throws IOException {
      byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
      ByteBuffer frame = ByteBuffer.allocate(4 + bytes.length).putInt(bytes.length).put(bytes);
      frame.flip();
      while (frame.hasRemaining() || end.layer.hasPendingWrites()) {
        end.layer.write(frame);
      }
    }

    void changeKeysOfPeer(boolean ask) throws IOException {
      ((OpenSsl) peer).changeKeys(ask);
      changes++;
      if (!engine.getUseClientMode()) {
        peer.await("KEYUPDATE\n", changes); // it sends it with its next data
        return;
      }
      while (engine.received() < changes) {
        end.selector.select(5);
        end.selector.selectedKeys().clear();
        assertThat(end.layer.read(ByteBuffer.allocate(1))).isZero();
      }
    }

    void carryALineEach(String line) throws IOException {
      peer.send(line + " from the peer");
      assertThat(readLine()).isEqualTo(line + " from the peer");
      send(line + " to the peer\n");
      peer.await(line + " to the peer\n", 1);
    }

    String readLine() throws IOException {
      ByteBuffer line = ByteBuffer.allocate(1000);
      while (line.position() == 0 || line.get(line.position() - 1) != '\n') {
        end.selector.select(5);
        end.selector.selectedKeys().clear();
        end.layer.read(line);
      }
      return new String(line.array(), 0, line.position() - 1, StandardCharsets.ISO_8859_1);
    }

    @Override
    public void close() throws IOException {
      peer.close();
      end.socket.close();
      end.selector.close();
    }
  }

  @ParameterizedTest
  @CsvSource({"JDK,true", "JDK,false", "BORINGSSL,true", "BORINGSSL,false"})
  void thePeerChangesItsKeys(EngineKind kind, boolean client) throws Exception {
    assertThat(updatesSent(kind, client, false)).as("not asked to").isZero();
  }

  @ParameterizedTest
  @CsvSource({"JDK,true", "JDK,false", "BORINGSSL,true", "BORINGSSL,false"})
  void thePeerAsksForOtherKeys(EngineKind kind, boolean client) throws Exception {
    assertThat(updatesSent(kind, client, true)).isEqualTo(ROUNDS);
  }

  /** Has the peer change its keys, and ask for others if it should, with data in between. */
  private static int updatesSent(EngineKind kind, boolean client, boolean ask) throws IOException {
    try (Link link = Link.of(kind, client, Make.OPENSSL)) {
      for (int i = 0; i < ROUNDS; i++) {
        link.changeKeysOfPeer(ask);
        link.carryALineEach("a line after change " + i);
      }
      assertThat(link.engine.received()).isEqualTo(ROUNDS);
      return link.engine.sent();
    }
  }

  /** BoringSSL does not begin. */
  @ParameterizedTest
  @CsvSource({"OPENSSL,true", "OPENSSL,false", "GO,true", "GO,false"})
  void thePeerIsAskedForOtherKeys(Make make, boolean client) throws Exception {
    String data = "~".repeat(2 * LIMIT) + "\n";
    try (Link link = Link.of(EngineKind.JDK, client, make)) {
      for (int i = 0; i < ROUNDS; i++) {
        link.send(data);
        link.peer.await(data, i + 1);
        link.carryALineEach("a line after much data " + i);
      }
      assertThat(link.engine.sent()).isGreaterThanOrEqualTo(ROUNDS);
      assertThat(link.engine.received()).as("answers").isGreaterThanOrEqualTo(ROUNDS);
    }
  }
}
