package dev.cipherlane.transport.engine;

import dev.cipherlane.identity.TlsFiles;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code openssl s_client} or {@code s_server}, which take a line that begins with K or k as an
 * order to change their keys. Not thread-safe.
 */
final class OpenSsl extends LinePeer {
  private OpenSsl(TlsFiles files, String... options) throws IOException {
    super(command(files, options));
  }

  private static List<String> command(TlsFiles files, String... options) {
    List<String> command = new ArrayList<>(List.of("openssl"));
    command.addAll(List.of(options));
    command.addAll(List.of("-tls1_3", "-verify_return_error", "-CAfile", files.ca().toString()));
    command.addAll(List.of("-cert", files.certificate().toString()));
    command.addAll(List.of("-key", files.key().toString()));
    return command;
  }

  /** Connects. */
  static OpenSsl client(TlsFiles files, int port) throws IOException {
    return new OpenSsl(files, "s_client", "-brief", "-connect", "127.0.0.1:" + port);
  }

  /** Listens for one connection, and demands a certificate. */
  static OpenSsl server(TlsFiles files) throws IOException {
    return new OpenSsl(
        files, "s_server", "-accept", "127.0.0.1:0", "-naccept", "1", "-Verify", "1");
  }

  /** Without what a server says whenever it has read all that there is, in the midst of data. */
  @Override
  String output() {
    return super.output().replace("Read BLOCK\n", "");
  }

  /**
   * Changes the keys with which it sends, and asks the peer to do so too, or does not. The next
   * line must not come before that is done, or it would be read together with the order.
   */
  void changeKeys(boolean ask) {
    send(ask ? "K" : "k");
  }
}
