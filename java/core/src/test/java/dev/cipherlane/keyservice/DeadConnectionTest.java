package dev.cipherlane.keyservice;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.identity.TlsFiles;
import dev.cipherlane.keys.Mode;
import dev.cipherlane.testing.KeyServiceProcess;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A connection on which nothing comes through any more, as a network leaves it that was cut. */
class DeadConnectionTest {
  private static final String POLICY =
      """
      version: 1
      topics: [{topics: ["*"], mode: encrypt}]
      grants:
        - {principals: ["spiffe://dev.cipherlane/producer"], actions: [encrypt], topics: ["*"]}
      """;

  @TempDir Path folder;

  /** Relays connections to a port; those that {@link #freeze} finds stay open and carry nothing. */
  private static final class Relay implements Closeable {
    private final ServerSocket listener = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
    private final List<Socket> sockets = new CopyOnWriteArrayList<>();
    private final List<Socket> frozen = new CopyOnWriteArrayList<>();
    private final int target;

    Relay(int target) throws IOException {
      this.target = target;
      run(this::accept);
    }

    String url() {
      return "https://127.0.0.1:" + listener.getLocalPort();
    }

    void freeze() {
      frozen.addAll(sockets);
    }

    int connections() {
      return sockets.size() / 2;
    }

    private interface Action {
      void run() throws IOException;
    }

    private static void run(Action action) {
      Thread thread =
          new Thread(
              () -> {
                try {
                  action.run();
                } catch (IOException e) {
                  // the end of a socket is the end of its thread
                }
              });
      thread.setDaemon(true);
      thread.start();
    }

    private void accept() throws IOException {
      while (true) {
        Socket client = listener.accept();
        Socket service = new Socket(InetAddress.getLoopbackAddress(), target);
        sockets.addAll(List.of(client, service));
        run(() -> copy(client, service));
        run(() -> copy(service, client));
      }
    }

    private void copy(Socket from, Socket to) throws IOException {
      byte[] buffer = new byte[8192];
      int size = from.getInputStream().read(buffer);
      while (size > 0) {
        if (!frozen.contains(from)) {
          to.getOutputStream().write(buffer, 0, size);
        }
        size = from.getInputStream().read(buffer);
      }
      to.close();
    }

    @Override
    public void close() throws IOException {
      listener.close();
      for (Socket socket : sockets) {
        socket.close();
      }
    }
  }

  private KeyServiceClient client(KeyServiceProcess service, Relay relay) {
    Map<String, Object> settings = service.settings("producer");
    TlsFiles files =
        new TlsFiles(path(settings, "ca"), path(settings, "certificate"), path(settings, "key"));
    return new KeyServiceClient(
        List.of(URI.create(relay.url())),
        files,
        Duration.ofSeconds(5),
        Duration.ofSeconds(1),
        () -> 7);
  }

  private static Path path(Map<String, Object> settings, String name) {
    return Path.of(settings.get("cipherlane.keyservice.tls." + name).toString());
  }

  @Test
  void isNotUsedAgain() throws IOException { // CL-KEY-014
    try (var service = KeyServiceProcess.start(folder, POLICY);
        var relay = new Relay(URI.create(service.url()).getPort())) {
      KeyServiceClient client = client(service, relay);
      assertThat(client.encryptionKey("topic", Optional.empty()).mode()).isEqualTo(Mode.ENCRYPT);
      assertThat(relay.connections()).isEqualTo(1);
      relay.freeze();
      assertThatThrownBy(() -> client.encryptionKey("topic", Optional.empty()))
          .isInstanceOf(CipherlaneException.class)
          .hasMessageContaining("no answer");
      assertThat(client.encryptionKey("topic", Optional.empty()).mode()).isEqualTo(Mode.ENCRYPT);
      assertThat(relay.connections()).isEqualTo(2);
      client.close();
    }
  }
}
