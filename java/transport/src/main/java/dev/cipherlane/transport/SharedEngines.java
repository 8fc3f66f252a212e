package dev.cipherlane.transport;

import dev.cipherlane.identity.Credentials;
import dev.cipherlane.transport.engine.TlsEngines;
import java.util.HashMap;
import java.util.Map;

/**
 * What makes engines for one certificate and one set of settings, shared by all who agree in both.
 * Kafka makes a factory for each network thread of a broker; whoever connects again may meet any of
 * them, and sessions are resumed only within one {@code TlsEngines}. The last to close it frees it.
 * Thread-safe.
 */
final class SharedEngines {
  /** Credentials are themselves alone: a renewed certificate, or other CAs, are others. */
  private record Id(Credentials credentials, EngineSettings settings) {}

  /** Guarded by {@link #OPEN}. */
  private static final class Open {
    private final TlsEngines engines;
    private int users;

    Open(TlsEngines engines) {
      this.engines = engines;
    }
  }

  private static final Map<Id, Open> OPEN = new HashMap<>();

  private SharedEngines() {}

  /** Makes or finds them; to be closed once by who asked. */
  static CurrentEngines.Made of(Credentials credentials, EngineSettings settings) {
    Id id = new Id(credentials, settings);
    synchronized (OPEN) {
      Open open = OPEN.computeIfAbsent(id, any -> new Open(settings.engines(credentials)));
      open.users++;
      return new CurrentEngines.Made(credentials, open.engines, () -> release(id, open));
    }
  }

  private static void release(Id id, Open open) {
    synchronized (OPEN) {
      if (--open.users > 0) {
        return;
      }
      OPEN.remove(id);
    }
    open.engines.close();
  }
}
