package dev.cipherlane.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.identity.SpiffePatterns;
import dev.cipherlane.transport.engine.EngineKind;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class EngineSettingsTest {
  private static EngineSettings of(Map<String, ?> settings) {
    return EngineSettings.of(settings, SpiffePatterns.ANY);
  }

  @Test
  void takesTheSettingsOfOneListenerThatAreKafkas() { // CL-IDN-044
    Map<String, ?> settings =
        Map.of("listener.name.tls.ssl.client.auth", "none", "cipherlane.tls.engine", "jdk");
    assertThat(of(settings).kind()).isEqualTo(EngineKind.JDK);
  }

  @ParameterizedTest
  @CsvSource({
    "listener.name.tls.cipherlane.tls.peer.ids, spiffe://example.org/**",
    "listener.name.tls.cipherlane.tls.engine, jdk",
    "listener.name.a.b.cipherlane.keyservice.urls, https://127.0.0.1:1"
  })
  void refusesThoseThatWouldDoNothing(String name, String value) { // CL-IDN-044
    assertThatThrownBy(() -> of(Map.of(name, value)))
        .isInstanceOf(CipherlaneException.class)
        .hasMessageContaining(name)
        .hasMessageContaining("for all");
  }
}
