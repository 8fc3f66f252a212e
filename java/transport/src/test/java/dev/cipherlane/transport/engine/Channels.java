package dev.cipherlane.transport.engine;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLEngine;
import org.apache.kafka.common.network.ChannelMetadataRegistry;
import org.apache.kafka.common.network.CipherInformation;
import org.apache.kafka.common.network.ClientInformation;
import org.apache.kafka.common.network.SslTransportLayer;

/** Two of Kafka's own TLS channels, connected through real sockets, each with a selector. */
final class Channels implements AutoCloseable {
  private static final long HANDSHAKE_MS = 20_000;

  /** One end. */
  static final class End {
    final SocketChannel socket;
    final Selector selector;
    final SelectionKey key;
    final SslTransportLayer layer;

    End(SocketChannel socket, SSLEngine engine) throws IOException {
      this.socket = socket;
      socket.configureBlocking(false);
      selector = Selector.open();
      key = socket.register(selector, SelectionKey.OP_READ);
      layer = SslTransportLayer.create("test", key, engine, new NoMetadata());
    }

    /** As Kafka's selector does: only when the key says that there is something to do. */
    boolean handshake() throws IOException {
      selector.select(5);
      selector.selectedKeys().clear();
      if (!layer.ready()) {
        layer.handshake();
      }
      return layer.ready();
    }
  }

  final End client;
  final End server;

  Channels(SSLEngine client, SSLEngine server) throws IOException {
    try (ServerSocketChannel listener = ServerSocketChannel.open()) {
      listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      this.client = new End(SocketChannel.open(listener.getLocalAddress()), client);
      this.server = new End(listener.accept(), server);
    }
  }

  Channels handshake() throws IOException {
    long end = System.currentTimeMillis() + HANDSHAKE_MS;
    while (!step()) {
      if (System.currentTimeMillis() > end) {
        throw new IOException("no end of the handshake");
      }
    }
    return this;
  }

  /** Lets each go on once; tells whether both are ready. */
  boolean step() throws IOException {
    boolean clientReady = client.handshake();
    return server.handshake() && clientReady;
  }

  @Override
  public void close() throws IOException {
    client.layer.close();
    server.layer.close();
    client.selector.close();
    server.selector.close();
  }

  private static final class NoMetadata implements ChannelMetadataRegistry {
    @Override
    public void registerCipherInformation(CipherInformation information) {}

    @Override
    public CipherInformation cipherInformation() {
      return null;
    }

    @Override
    public void registerClientInformation(ClientInformation information) {}

    @Override
    public ClientInformation clientInformation() {
      return null;
    }

    @Override
    public void close() {}
  }
}
