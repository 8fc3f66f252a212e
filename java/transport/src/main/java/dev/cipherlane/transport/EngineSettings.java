package dev.cipherlane.transport;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.Configuration;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.identity.Credentials;
import dev.cipherlane.identity.SpiffePatterns;
import dev.cipherlane.identity.TlsContexts;
import dev.cipherlane.transport.engine.EngineKind;
import dev.cipherlane.transport.engine.TlsEngines;
import java.security.GeneralSecurityException;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.SSLParameters;
import org.apache.kafka.common.config.SslConfigs;

/**
 * What the settings of a client or a listener say about its engines. Immutable.
 *
 * @param peers SPIFFE ids of peers
 * @param kind which engine
 * @param protocols versions of TLS
 * @param cipherSuites none means the engine's defaults
 */
record EngineSettings(
    SpiffePatterns peers, EngineKind kind, List<String> protocols, List<String> cipherSuites) {
  private static final Set<String> PROTOCOLS = Set.of("TLSv1.3", "TLSv1.2");

  /**
   * Reads them.
   *
   * @throws CipherlaneException {@code configuration-invalid}
   */
  static EngineSettings of(Map<String, ?> settings, SpiffePatterns peers) {
    refuseOfOneListener(settings.keySet());
    return new EngineSettings(
        peers,
        kind(settings),
        protocols(settings),
        list(settings.get(SslConfigs.SSL_CIPHER_SUITES_CONFIG)));
  }

  /**
   * Kafka has only settings of its own differ from listener to listener. What seems to say for one
   * whom to take for a peer would say nothing [CL-IDN-044].
   */
  private static void refuseOfOneListener(Set<String> names) {
    for (String name : names) {
      if (name.startsWith("listener.name.") && name.contains(".cipherlane.")) {
        String whole = name.substring(name.indexOf("cipherlane."));
        throw new CipherlaneException(
            ErrorCode.CONFIGURATION_INVALID,
            "setting " + name + ": has no effect on one listener; set " + whole + " for all");
      }
    }
  }

  private static EngineKind kind(Map<String, ?> settings) {
    Object given = settings.get(Configuration.TLS_ENGINE);
    try {
      return EngineKind.of(given == null ? EngineKind.AUTO.toString() : given.toString().strip());
    } catch (IllegalArgumentException e) {
      throw new CipherlaneException(ErrorCode.CONFIGURATION_INVALID, e.getMessage(), e);
    }
  }

  private static List<String> protocols(Map<String, ?> settings) {
    List<String> given = list(settings.get(SslConfigs.SSL_ENABLED_PROTOCOLS_CONFIG));
    List<String> wanted = given.isEmpty() ? List.of("TLSv1.3", "TLSv1.2") : given;
    if (!PROTOCOLS.containsAll(wanted)) {
      throw new CipherlaneException(
          ErrorCode.CONFIGURATION_INVALID,
          "setting " + SslConfigs.SSL_ENABLED_PROTOCOLS_CONFIG + ": takes TLSv1.3 and TLSv1.2");
    }
    return wanted;
  }

  private static List<String> list(Object value) {
    if (value instanceof Collection<?> all) {
      return all.stream().map(Object::toString).toList();
    }
    String text = value == null ? "" : value.toString().strip();
    return text.isEmpty() ? List.of() : List.of(text.split("\\s*,\\s*"));
  }

  /** What each engine is told. */
  SSLParameters parameters() {
    return new SSLParameters(
        cipherSuites.isEmpty() ? null : cipherSuites.toArray(String[]::new),
        protocols.toArray(String[]::new));
  }

  /** Makes what makes engines that show a certificate and trust whom it comes with. */
  TlsEngines engines(Credentials own) {
    try {
      return TlsEngines.create(
          TlsContexts.keyManager(own),
          new PeerTrust(TlsContexts.trustManager(own.trust().peers()), peers),
          kind);
    } catch (GeneralSecurityException e) {
      throw new CipherlaneException(
          ErrorCode.CONFIGURATION_INVALID, "this certificate cannot be used for TLS", e);
    }
  }
}
