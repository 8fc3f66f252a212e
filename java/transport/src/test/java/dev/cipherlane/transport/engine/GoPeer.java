package dev.cipherlane.transport.engine;

import dev.cipherlane.identity.TlsFiles;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The program {@code src/test/go/peer.go}, on Go's standard library. Not thread-safe. */
final class GoPeer extends LinePeer {
  private GoPeer(Path program, TlsFiles files, String role, String... address) throws IOException {
    super(command(program, files, role, address));
  }

  private static List<String> command(
      Path program, TlsFiles files, String role, String... address) {
    List<String> command = new ArrayList<>(List.of(program.toString(), role));
    command.add(files.ca().toString());
    command.add(files.certificate().toString());
    command.add(files.key().toString());
    command.addAll(List.of(address));
    return command;
  }

  /** Builds the program into the folder. */
  static Path build(Path folder) throws IOException, InterruptedException {
    Path program = folder.resolve("peer");
    Process go =
        new ProcessBuilder("go", "build", "-o", program.toString(), "src/test/go/peer.go")
            .inheritIO()
            .start();
    if (go.waitFor() != 0) {
      throw new IOException("go build ended with " + go.exitValue());
    }
    return program;
  }

  /** Connects. */
  static GoPeer client(Path program, TlsFiles files, int port) throws IOException {
    return new GoPeer(program, files, "client", "127.0.0.1:" + port);
  }

  /** Listens for one connection. */
  static GoPeer server(Path program, TlsFiles files) throws IOException {
    return new GoPeer(program, files, "server");
  }
}
