package dev.cipherlane.benchmarks;

import java.util.List;
import java.util.Map;
import java.util.Properties;

/** Connections that are used once and then kept: {@code run COUNT}. */
final class IdleLoad implements Load {
  private final Connections connections;

  IdleLoad(Properties configuration) {
    connections = new Connections(configuration);
  }

  @Override
  public Map<String, Double> run(List<String> arguments) throws Exception {
    int count = Integer.parseInt(arguments.get(0));
    for (int i = 0; i < count; i++) {
      connections.open(String.valueOf(i));
    }
    return Map.of();
  }

  @Override
  public void close() {
    connections.close();
  }
}
