package dev.cipherlane.transport;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.Configuration;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.SharedIdentity;
import dev.cipherlane.identity.Credentials;
import dev.cipherlane.identity.Identity;
import dev.cipherlane.identity.TlsContexts;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.transport.engine.EngineKind;
import dev.cipherlane.transport.engine.TlsEngines;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.security.auth.SslEngineFactory;

/**
 * Mutual TLS for Kafka clients and brokers with the identity of the {@code cipherlane.*} settings:
 * {@code security.protocol=SSL} and {@code ssl.engine.factory.class} with the name of this class.
 * No key store and no trust store. A certificate that is renewed serves the connections made from
 * then on; those made before end with theirs [CL-IDN-042].
 *
 * <p>Both sides show a certificate, whatever {@code ssl.client.auth} says. Thread-safe.
 */
public final class CipherlaneSslEngineFactory implements SslEngineFactory {
  private static final Set<String> PROTOCOLS = Set.of("TLSv1.3", "TLSv1.2");

  /** What makes engines for one certificate. */
  private record Made(Credentials credentials, TlsEngines engines) {}

  private final LeaseClock clock = LeaseClock.system();
  private Configuration configuration;
  private EngineKind kind;
  private String[] protocols;
  private String[] cipherSuites;
  private Identity identity;
  private volatile Made made;

  /**
   * Reads the settings, and starts to ask for a certificate where it is to be renewed.
   *
   * @throws CipherlaneException {@code configuration-invalid}
   */
  @Override
  public void configure(Map<String, ?> settings) {
    configuration = Configuration.of(settings);
    kind = kind(settings);
    protocols = protocols(settings);
    List<String> suites = list(settings.get(SslConfigs.SSL_CIPHER_SUITES_CONFIG));
    cipherSuites = suites.isEmpty() ? null : suites.toArray(String[]::new);
    identity = SharedIdentity.of(configuration);
  }

  private static EngineKind kind(Map<String, ?> settings) {
    Object given = settings.get(Configuration.TLS_ENGINE);
    try {
      return EngineKind.of(given == null ? EngineKind.AUTO.toString() : given.toString().strip());
    } catch (IllegalArgumentException e) {
      throw new CipherlaneException(ErrorCode.CONFIGURATION_INVALID, e.getMessage(), e);
    }
  }

  private static String[] protocols(Map<String, ?> settings) {
    List<String> given = list(settings.get(SslConfigs.SSL_ENABLED_PROTOCOLS_CONFIG));
    List<String> wanted = given.isEmpty() ? List.of("TLSv1.3", "TLSv1.2") : given;
    if (!PROTOCOLS.containsAll(wanted)) {
      throw new CipherlaneException(
          ErrorCode.CONFIGURATION_INVALID,
          "setting " + SslConfigs.SSL_ENABLED_PROTOCOLS_CONFIG + ": takes TLSv1.3 and TLSv1.2");
    }
    return wanted.toArray(String[]::new);
  }

  private static List<String> list(Object value) {
    if (value instanceof Collection<?> all) {
      return all.stream().map(Object::toString).toList();
    }
    String text = value == null ? "" : value.toString().strip();
    return text.isEmpty() ? List.of() : List.of(text.split("\\s*,\\s*"));
  }

  @Override
  public SSLEngine createClientSslEngine(String host, int port, String endpointIdentification) {
    SSLParameters parameters = parameters();
    parameters.setEndpointIdentificationAlgorithm(endpointIdentification);
    Made now = engines();
    SSLEngine engine = now.engines().client(host, port, parameters);
    return new EndingEngine(engine, new ConnectionEnd(clock, now.credentials().endsAt(), true));
  }

  @Override
  public SSLEngine createServerSslEngine(String host, int port) {
    SSLParameters parameters = parameters();
    parameters.setNeedClientAuth(true);
    Made now = engines();
    SSLEngine engine = now.engines().server(host, port, parameters);
    return new EndingEngine(engine, new ConnectionEnd(clock, now.credentials().endsAt(), false));
  }

  private SSLParameters parameters() {
    return new SSLParameters(cipherSuites, protocols);
  }

  /** One maker for each certificate, so that no session outlives the one it was made with. */
  private Made engines() {
    Credentials now = identity.credentials();
    Made last = made;
    return last != null && last.credentials() == now ? last : renewed(now);
  }

  private synchronized Made renewed(Credentials now) {
    if (made != null && made.credentials() == now) {
      return made;
    }
    try {
      Made next =
          new Made(
              now,
              TlsEngines.create(
                  TlsContexts.keyManager(now),
                  new PeerTrust(
                      TlsContexts.trustManager(now.trust().peers()), configuration.peers()),
                  kind));
      closeEngines();
      made = next;
      return next;
    } catch (GeneralSecurityException e) {
      throw new CipherlaneException(
          ErrorCode.CONFIGURATION_INVALID, "this certificate cannot be used for TLS", e);
    }
  }

  private synchronized void closeEngines() {
    if (made != null) {
      made.engines().close();
    }
  }

  /** Never: a renewed certificate needs no new factory. */
  @Override
  public boolean shouldBeRebuilt(Map<String, Object> nextConfigs) {
    return false;
  }

  @Override
  public Set<String> reconfigurableConfigs() {
    return Set.of();
  }

  /** There is none. */
  @Override
  public KeyStore keystore() {
    return null;
  }

  /** There is none. */
  @Override
  public KeyStore truststore() {
    return null;
  }

  @Override
  public void close() {
    if (identity != null) {
      identity.close();
    }
    closeEngines();
  }
}
