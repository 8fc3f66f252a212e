package dev.cipherlane.kafka;

import dev.cipherlane.testing.BrokerProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * One broker and one key service for all test classes that name this extension; stopped at the end.
 */
final class Cluster implements BeforeAllCallback {
  /**
   * The first rule that matches decides. Topics that share a prefix up to the first dot share a
   * scope where a rule says so.
   */
  static final String POLICY =
      """
      version: 1
      lease: {expires_in: 5m}
      topics:
        - topics: ["clear.*"]
          mode: clear
        - topics: ["forbidden.*"]
          mode: forbid
        - topics: ["migrating.*"]
          mode: encrypt
          plaintext: accept
        - topics: ["shared.*"]
          mode: encrypt
          scope: shared
        - topics: ["encrypted.*", "hidden.*"]
          mode: encrypt
      grants:
        - principals: ["spiffe://dev.cipherlane/producer"]
          actions: [encrypt]
          topics: ["*"]
        - principals: ["spiffe://dev.cipherlane/consumer"]
          actions: [decrypt]
          topics: ["clear.*", "forbidden.*", "migrating.*", "shared.*", "encrypted.*", "unknown.*"]
        - principals: ["spiffe://dev.cipherlane/operator"]
          actions: [rotate]
          scopes: ["*"]
      """;

  // Small files: after most tests all of them are searched for plaintext.
  private static final List<String> BROKER =
      List.of(
          "--auto-create",
          "--set",
          "num.partitions=1",
          "--set",
          "log.index.size.max.bytes=65536",
          "--set",
          "offsets.topic.num.partitions=1");

  private static Running running;

  private record Running(Path folder, BrokerProcess broker, KeyServiceProcess keyService)
      implements AutoCloseable {
    static Running start() {
      try {
        Path folder = Files.createTempDirectory("cipherlane-cluster-");
        try {
          KeyServiceProcess keyService = KeyServiceProcess.start(folder, POLICY);
          return new Running(folder, broker(keyService), keyService);
        } catch (IOException e) {
          deleteAll(folder);
          throw e;
        }
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
    }

    private static BrokerProcess broker(KeyServiceProcess keyService) throws IOException {
      try {
        return BrokerProcess.start(BROKER.toArray(String[]::new));
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
  }

  static void deleteAll(Path folder) throws IOException {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(file);
      }
    }
  }

  @Override
  public void beforeAll(ExtensionContext context) {
    var store = context.getRoot().getStore(ExtensionContext.Namespace.create(Cluster.class));
    running = store.computeIfAbsent(Running.class, key -> Running.start(), Running.class);
  }

  static BrokerProcess broker() {
    return running.broker();
  }

  static KeyServiceProcess keyService() {
    return running.keyService();
  }
}
