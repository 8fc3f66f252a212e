package dev.cipherlane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.net.URI;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The settings of spec/configuration.md. CL-CFG-001 CL-CFG-002 */
class ConfigurationTest {
  @Test
  void defaultsAreThoseOfTheSpecification() {
    Configuration configuration = Settings.of();
    assertThat(configuration.connectTimeout()).isEqualTo(Duration.ofSeconds(2));
    assertThat(configuration.requestTimeout()).isEqualTo(Duration.ofSeconds(5));
    assertThat(configuration.keys().deadline()).isEqualTo(Duration.ofSeconds(10));
    assertThat(configuration.keys().backoff()).isEqualTo(Duration.ofMillis(500));
    assertThat(configuration.keys().max()).isEqualTo(10_000);
    assertThat(configuration.maxPlaintext()).isEqualTo(67_108_864);
  }

  @Test
  void othersMayBeAnything() {
    assertThat(Settings.of("bootstrap.servers", 7, "cipherlaneish", "x")).isNotNull();
  }

  @Test
  void severalAddressesStayInTheirOrder() {
    assertThat(Settings.of("cipherlane.keyservice.urls", "https://a:1 ,https://[::1]:2/").urls())
        .containsExactly(URI.create("https://a:1"), URI.create("https://[::1]:2/"));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        " ",
        "http://a:1",
        "a:1",
        "https://",
        "https://a:1,",
        "https://a:1/path",
        "https://a:1?query",
        "https://a:1#part",
        "https://user@a:1",
        "https://a:0",
        "https://a:1 https://b:1",
        "HTTPS//a"
      })
  void otherAddressesAreRefused(String urls) { // CL-KEY-002
    assertThatThrownBy(() -> Settings.of("cipherlane.keyservice.urls", urls))
        .isInstanceOf(CipherlaneException.class)
        .hasMessageContaining("configuration-invalid: setting cipherlane.keyservice.urls");
  }

  @ParameterizedTest
  @CsvSource({
    "cipherlane.keyservice.connect.timeout.ms, 1, 60000",
    "cipherlane.keyservice.request.timeout.ms, 1, 60000",
    "cipherlane.keys.deadline.ms, 1, 600000",
    "cipherlane.keys.retry.backoff.ms, 1, 60000",
    "cipherlane.keys.cache.max, 16, 1000000",
    "cipherlane.max.plaintext.bytes, 1, 1073741824"
  })
  void numbersHaveLimits(String name, long min, long max) {
    assertThat(Settings.of(name, min)).isNotNull();
    assertThat(Settings.of(name, String.valueOf(max))).isNotNull();
    for (Object wrong : new Object[] {min - 1, max + 1, -min, "", "x", "1.0", "1e3", 0.5, "0x10"}) {
      assertThatThrownBy(() -> Settings.of(name, wrong))
          .isInstanceOf(CipherlaneException.class)
          .hasMessageContaining("configuration-invalid: setting " + name);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "cipherlane.keyservice.url, cipherlane.keyservice.urls",
    "cipherlane.Keys.cache.max, cipherlane.keys.cache.max",
    "cipherlane.keys.cachemax, cipherlane.keys.cache.max",
    "cipherlane.plaintext.max.bytes, cipherlane.max.plaintext.bytes"
  })
  void unknownNamesAreRefusedWithTheNearestKnown(String name, String nearest) {
    assertThatThrownBy(() -> Settings.of(name, "1"))
        .hasMessageContaining("setting " + name + ": unknown")
        .hasMessageContaining(nearest);
  }

  @ParameterizedTest
  @ValueSource(strings = {"skip", "FAIL", "", "dead-letter"})
  void otherFailureActionsAreRefused(String action) {
    assertThatThrownBy(() -> Settings.of("cipherlane.failure.action", action))
        .hasMessageContaining("cipherlane.failure.action");
    assertThat(Settings.of("cipherlane.failure.action", "fail")).isNotNull();
  }

  @Test
  void requiredSettingsAreRequired() {
    for (String name : Settings.map().keySet()) {
      Map<String, Object> settings = new HashMap<>(Settings.map());
      settings.remove(name);
      assertThatThrownBy(() -> Configuration.of(settings))
          .hasMessageContaining(name + ": required");
      settings.put(name, 7);
      assertThatThrownBy(() -> Configuration.of(settings))
          .hasMessageContaining(name + ": required");
    }
  }
}
