package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;

/** Connections that are made, used once and closed, one after the other: {@code run COUNT}. */
final class HandshakeLoad implements Load {
  /** Share of the handshakes that went on with an earlier session. */
  static final String RESUMED = "resumed";

  private static final String ID = "one";

  private final Pool<Connections> connections;

  HandshakeLoad(int atATime, Properties configuration) {
    connections = new Pool<>(atATime, () -> new Connections(configuration));
  }

  @Override
  public Map<String, Double> run(List<String> arguments) throws Exception {
    int all = connections.clients().size();
    int share = Integer.parseInt(arguments.get(0)) / all;
    AtomicLong resumed = new AtomicLong();
    connections.each(
        each -> {
          for (int i = 0; i < share; i++) {
            each.open(ID);
            resumed.addAndGet(HandshakeEngineFactory.resumed() ? 1 : 0);
            each.close(ID);
          }
        });
    return Map.of(RESUMED, resumed.doubleValue() / (share * all));
  }

  @Override
  public void close() throws IOException {
    connections.close();
  }
}
