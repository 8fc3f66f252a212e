package dev.cipherlane.transport.engine;

import java.util.Map;

/**
 * Gives a client of Kafka engines of the test's, which outlive it: so its successor has its
 * sessions.
 */
public final class GivenEngineFactory extends KeyStoreEngineFactory {
  /** The name of the setting whose value is the {@link TlsEngines}. */
  public static final String ENGINES = "test.engines";

  @Override
  TlsEngines engines(Map<String, ?> configs) {
    return (TlsEngines) configs.get(ENGINES);
  }

  @Override
  public void close() {}
}
