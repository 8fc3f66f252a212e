package dev.cipherlane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.identity.IdentitySettings;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
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
    assertThat(configuration.writing())
        .isEqualTo(new Configuration.Writing(TopicPatterns.NONE, 1024, TopicPatterns.NONE));
    assertThat(configuration.reading())
        .isEqualTo(new Configuration.Reading(FailureAction.FAIL, "{topic}.dead-letter"));
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
    "cipherlane.compression.min.bytes, 0, 1073741824",
    "cipherlane.max.plaintext.bytes, 1, 1073741824"
  })
  void numbersHaveLimits(String name, long min, long max) {
    assertThat(Settings.of(name, min)).isNotNull();
    assertThat(Settings.of(name, String.valueOf(max))).isNotNull();
    for (Object wrong : new Object[] {min - 1, max + 1, -max, "", "x", "1.0", "1e3", 0.5, "0x10"}) {
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
  @EnumSource
  void failureActionsAreKnownByTheirNames(FailureAction action) { // CL-CFG-002
    assertThat(Settings.of("cipherlane.failure.action", action.label()).reading().action())
        .isEqualTo(action);
  }

  @ParameterizedTest
  @ValueSource(strings = {"FAIL", "", "dead_letter", "skip,mark", "drop"})
  void otherFailureActionsAreRefused(String action) {
    assertThatThrownBy(() -> Settings.of("cipherlane.failure.action", action))
        .hasMessageContaining("configuration-invalid: setting cipherlane.failure.action");
  }

  @ParameterizedTest
  @ValueSource(strings = {"{topic}.dead-letter", "dead-letters", "{topic}", "a.{topic}.{topic}"})
  void deadLetterTopicsMayNameTheTopic(String topic) {
    assertThat(Settings.of("cipherlane.dead.letter.topic", topic).reading().deadLetterTopic())
        .isEqualTo(topic);
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "dead letters", "{Topic}", "{topic}/x", ".", "*"})
  void otherDeadLetterTopicsAreRefused(String topic) {
    assertThatThrownBy(() -> Settings.of("cipherlane.dead.letter.topic", topic))
        .hasMessageContaining("configuration-invalid: setting cipherlane.dead.letter.topic");
  }

  @ParameterizedTest
  @CsvSource({
    "'claims', claims, true",
    "'claims', claims2, false",
    "'claims', aclaims, false",
    "'a.b', a.b, true",
    "'a.b', axb, false",
    "'claims.*', claims., true",
    "'claims.*', claims.eu.1, true",
    "'claims.*', claims, false",
    "'claim?', claims, true",
    "'claim?', claim, false",
    "'*', anything, true",
    "'*a*b', xaybz, false",
    "' x , y?, z ', y1, true",
    "' x , y?, z ', z, true",
    "'', x, false"
  })
  void globsMatchTheWholeName(String globs, String topic, boolean matches) {
    Configuration configuration =
        Settings.of("cipherlane.compression.topics", globs, "cipherlane.record.key.topics", globs);
    for (int i = 0; i < 2; i++) {
      assertThat(configuration.writing().compressed().matches(topic)).isEqualTo(matches);
      assertThat(configuration.writing().keyBound().matches(topic)).isEqualTo(matches);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {",", "a,", "a b", "[ab]", "a/b", "a|b", "\u00e9", "{topic}"})
  void otherGlobsAreRefused(String globs) {
    for (String name :
        new String[] {"cipherlane.compression.topics", "cipherlane.record.key.topics"}) {
      assertThatThrownBy(() -> Settings.of(name, globs))
          .hasMessageContaining("configuration-invalid: setting " + name);
      assertThatThrownBy(() -> Settings.of(name, "a".repeat(250))).hasMessageContaining(name);
    }
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

  private static Map<String, Object> without(String... names) {
    Map<String, Object> settings = Settings.map();
    for (String name : names) {
      settings.remove(name);
    }
    return settings;
  }

  @Test
  void tokensAndJwtsStandInPlaceOfCertificates() {
    Map<String, Object> settings =
        without("cipherlane.keyservice.tls.certificate", "cipherlane.keyservice.tls.key");
    assertThatThrownBy(() -> Configuration.of(settings)).hasMessageContaining("required");
    settings.put("cipherlane.identity.token.file", "token");
    assertThat(Configuration.of(settings).identity().renew()).isTrue();
    assertThat(Configuration.of(settings).identity().first())
        .isEqualTo(new IdentitySettings.Token(Path.of("token")));
    settings.put("cipherlane.identity.jwt.file", "jwt");
    assertThatThrownBy(() -> Configuration.of(settings))
        .hasMessageContaining("cipherlane.identity.jwt.file: not beside");
    settings.remove("cipherlane.identity.token.file");
    assertThat(Configuration.of(settings).identity().first())
        .isEqualTo(new IdentitySettings.Jwt(Path.of("jwt")));
    settings.put("cipherlane.identity.renew", "false");
    assertThatThrownBy(() -> Configuration.of(settings))
        .hasMessageContaining("cipherlane.identity.renew");
  }

  @ParameterizedTest
  @ValueSource(strings = {"cipherlane.keyservice.tls.certificate", "cipherlane.keyservice.tls.key"})
  void nothingElseBesideAToken(String other) {
    Map<String, Object> settings =
        without("cipherlane.keyservice.tls.certificate", "cipherlane.keyservice.tls.key");
    settings.put("cipherlane.identity.token.file", "token");
    settings.put(other, "x.pem");
    assertThatThrownBy(() -> Configuration.of(settings))
        .hasMessageContaining(other + ": not beside");
  }

  @Test
  void filesAreStaticUnlessToldOtherwise() {
    assertThat(Settings.of().identity().renew()).isFalse();
    assertThat(Settings.of("cipherlane.identity.renew", true).identity().renew()).isTrue();
    for (Object wrong : new Object[] {"yes", "TRUE", 1, ""}) {
      assertThatThrownBy(() -> Settings.of("cipherlane.identity.renew", wrong))
          .hasMessageContaining("cipherlane.identity.renew: takes true or false");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "'', spiffe://a/b, true",
    "spiffe://a/b, spiffe://a/b, true",
    "spiffe://a/b, spiffe://a/b/c, false",
    "spiffe://a/b, spiffe://axb, false",
    "spiffe://a/*, spiffe://a/b, true",
    "spiffe://a/*, spiffe://a/b/c, false",
    "spiffe://a/**, spiffe://a/b/c, true",
    "spiffe://a/x/**, spiffe://a/x, false",
    "spiffe://a/broker-?, spiffe://a/broker-1, true",
    "spiffe://a/broker-?, spiffe://a/broker-, false",
    "'spiffe://a/b , spiffe://c.d/e', spiffe://c.d/e, true",
    "'spiffe://a/b,spiffe://c.d/e', spiffe://cxd/e, false"
  })
  void peersAreKnownByTheirIds(String patterns, String id, boolean matches) {
    assertThat(Settings.of("cipherlane.tls.peer.ids", patterns).peers().matches(id))
        .isEqualTo(matches);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        ",",
        "broker",
        "*",
        "spiffe://a",
        "spiffe://",
        "https://a/b",
        "spiffe://A/b",
        "spiffe://a/**/b",
        "spiffe://a/b/",
        "spiffe://a//b",
        "spiffe://a/b,,spiffe://a/c"
      })
  void otherPeersAreRefused(String patterns) {
    assertThatThrownBy(() -> Settings.of("cipherlane.tls.peer.ids", patterns))
        .hasMessageContaining("configuration-invalid: setting cipherlane.tls.peer.ids");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "*.a",
        "A.b",
        "a..b",
        "-a",
        "a,",
        "a b",
        "1.2.3.4.5",
        "1.2.3.400",
        "a.1",
        "fe80::1%eth0",
        "::g",
        ":::::",
        "a_b",
        "1,2,3,4,5,6,7,8,9,a,b,c,d,e,f,g,h"
      })
  void otherNamesOfServersAreRefused(String names) { // CL-IDN-026
    assertThat(
            Settings.of(
                    "cipherlane.identity.renew",
                    true,
                    "cipherlane.tls.server.names",
                    "broker-1.a, localhost,10.0.0.7, ::1")
                .identity()
                .serverNames())
        .containsExactly("broker-1.a", "localhost", "10.0.0.7", "::1");
    assertThatThrownBy(
            () ->
                Settings.of(
                    "cipherlane.identity.renew", true, "cipherlane.tls.server.names", names))
        .hasMessageContaining("configuration-invalid: setting cipherlane.tls.server.names");
    assertThatThrownBy(() -> Settings.of("cipherlane.tls.server.names", "localhost"))
        .hasMessageContaining("goes with cipherlane.identity.renew only");
  }
}
