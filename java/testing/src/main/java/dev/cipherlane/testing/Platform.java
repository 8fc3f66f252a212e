package dev.cipherlane.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/**
 * A real broker and a real key service with a folder of their own, for tests. Thread-safe but for
 * what {@link KeyServiceProcess} is not.
 *
 * @param folder deleted at the end
 * @param broker small files, topics made when they are asked for
 * @param keyService with the policy of the test
 */
public record Platform(Path folder, BrokerProcess broker, KeyServiceProcess keyService)
    implements AutoCloseable {
  // Small files: after most tests all of them are searched for plaintext.
  private static final String[] BROKER = {
    "--auto-create",
    "--set",
    "num.partitions=1",
    "--set",
    "log.index.size.max.bytes=65536",
    "--set",
    "offsets.topic.num.partitions=1"
  };

  /**
   * Starts both.
   *
   * @param policy the text of the policy file
   * @return both, which answer
   * @throws IOException if one does not start; then nothing is left running
   */
  public static Platform start(String policy) throws IOException {
    Path folder = Files.createTempDirectory("cipherlane-platform-");
    try {
      KeyServiceProcess keyService = KeyServiceProcess.start(folder, policy);
      return new Platform(folder, broker(keyService), keyService);
    } catch (IOException e) {
      deleteAll(folder);
      throw e;
    }
  }

  private static BrokerProcess broker(KeyServiceProcess keyService) throws IOException {
    try {
      return BrokerProcess.start(BROKER);
    } catch (IOException e) {
      keyService.close();
      throw e;
    }
  }

  @Override
  public void close() throws IOException {
    try (broker;
        keyService) {
      // Stopped in any case.
    } finally {
      deleteAll(folder);
    }
  }

  private static void deleteAll(Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }
}
