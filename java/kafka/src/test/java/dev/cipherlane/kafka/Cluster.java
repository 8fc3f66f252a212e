package dev.cipherlane.kafka;

import dev.cipherlane.testing.BrokerProcess;
import dev.cipherlane.testing.KeyServiceProcess;
import dev.cipherlane.testing.Platform;
import java.io.IOException;
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

  private static Platform running;

  @Override
  public void beforeAll(ExtensionContext context) {
    var store = context.getRoot().getStore(ExtensionContext.Namespace.create(Cluster.class));
    running = store.computeIfAbsent(Platform.class, key -> start(), Platform.class);
  }

  private static Platform start() {
    try {
      return Platform.start(POLICY);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  static BrokerProcess broker() {
    return running.broker();
  }

  static KeyServiceProcess keyService() {
    return running.keyService();
  }
}
