package dev.cipherlane.broker;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** The folder a broker works in, which no other broker may use at the same time. */
final class WorkFolder implements AutoCloseable {
  private final Path path;
  private final boolean temporary;

  /** Holds the lock for as long as the process lives. */
  private final FileChannel lockFile;

  private WorkFolder(Path path, boolean temporary) throws IOException {
    this.path = path;
    this.temporary = temporary;
    this.lockFile =
        FileChannel.open(
            path.resolve("in-use.lock"), StandardOpenOption.CREATE, StandardOpenOption.WRITE);
  }

  /**
   * Makes the folder if need be, and locks it.
   *
   * @throws IOException if it cannot be made, or another broker works in it
   */
  static WorkFolder open(Options options) throws IOException {
    WorkFolder folder =
        options.dir().isPresent()
            ? new WorkFolder(Files.createDirectories(options.dir().get()), false)
            : new WorkFolder(
                Files.createTempDirectory("cipherlane-broker-").toAbsolutePath(), !options.keep());
    folder.lock();
    return folder;
  }

  /**
   * Kafka has locks of its own, but a second broker spoils the first one's metadata before it comes
   * to them.
   */
  private void lock() throws IOException {
    if (lockFile.tryLock() == null) {
      lockFile.close();
      throw new IOException("another broker is working in " + path);
    }
  }

  Path path() {
    return path;
  }

  /** Whether it is deleted at the end. */
  boolean temporary() {
    return temporary;
  }

  /** Where the broker stores records. */
  Path logDir() {
    return path.resolve("data");
  }

  /** What the broker tells about its work. */
  Path logFile() {
    return path.resolve("broker.log");
  }

  /** The broker's settings, for a person to look at and for the tool that formats the storage. */
  Path settingsFile() {
    return path.resolve("broker.properties");
  }

  /** Deletes the folder if it is temporary, and lets go of it. */
  @Override
  public void close() {
    try {
      if (temporary) {
        delete();
      }
      lockFile.close();
    } catch (IOException | UncheckedIOException e) {
      System.err.println("cipherlane-broker: cannot delete " + path + ": " + e.getMessage());
    }
  }

  private void delete() throws IOException {
    List<Path> contentsFirst;
    try (Stream<Path> walk = Files.walk(path)) {
      contentsFirst = walk.sorted(Comparator.reverseOrder()).toList();
    }
    for (Path file : contentsFirst) {
      Files.deleteIfExists(file);
    }
  }
}
