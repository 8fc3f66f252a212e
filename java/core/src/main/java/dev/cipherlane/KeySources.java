package dev.cipherlane;

import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keyservice.KeyServiceClient;

/** Makes the client of the key service from settings. */
final class KeySources {
  private KeySources() {}

  static KeySource of(Configuration configuration) {
    return new KeyServiceClient(
        configuration.urls(),
        configuration.tls(),
        configuration.connectTimeout(),
        configuration.requestTimeout(),
        LeaseClock.system());
  }
}
