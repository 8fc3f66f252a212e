package dev.cipherlane.benchmarks;

import java.io.Closeable;
import java.util.List;
import java.util.Map;
import java.util.Properties;

/** Clients of one Java machine that stay open from run to run. */
interface Load extends Closeable {
  /**
   * Opens clients.
   *
   * @param kind what they do
   * @param clients how many
   * @param configuration of each
   */
  static Load open(String kind, int clients, Properties configuration) {
    return switch (kind) {
      case "produce" -> new ProducerLoad(clients, configuration);
      case "consume" -> new ConsumerLoad(clients, configuration);
      case "pace" -> new PacedLoad(clients, configuration);
      case "handshake" -> new HandshakeLoad(clients, configuration);
      case "idle" -> new IdleLoad(configuration);
      default -> throw new IllegalArgumentException(kind);
    };
  }

  /**
   * Runs once.
   *
   * @param arguments as the kind has it
   * @return what it measures itself; often nothing
   */
  Map<String, Double> run(List<String> arguments) throws Exception;
}
