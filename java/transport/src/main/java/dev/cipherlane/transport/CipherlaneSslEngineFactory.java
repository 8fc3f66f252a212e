package dev.cipherlane.transport;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.Configuration;
import dev.cipherlane.SharedIdentity;
import dev.cipherlane.identity.Credentials;
import dev.cipherlane.identity.Identity;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.transport.engine.TlsEngines;
import java.security.KeyStore;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
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
  private final LeaseClock clock = LeaseClock.system();
  private EngineSettings settings;
  private Identity identity;
  private CurrentEngines clients;
  private CurrentEngines servers;

  /**
   * Reads the settings, and starts to ask for a certificate where it is to be renewed.
   *
   * @throws CipherlaneException {@code configuration-invalid}
   */
  @Override
  public void configure(Map<String, ?> given) {
    Configuration configuration = Configuration.of(given);
    settings = EngineSettings.of(given, configuration.peers());
    identity = SharedIdentity.of(configuration);
    clients = new CurrentEngines(this::unshared);
    servers = new CurrentEngines(now -> SharedEngines.of(now, settings));
  }

  /**
   * A client has its sessions to itself: BoringSSL's cache would resume one for which the host's
   * name was not checked, where it is to be.
   */
  private CurrentEngines.Made unshared(Credentials now) {
    TlsEngines engines = settings.engines(now);
    return new CurrentEngines.Made(now, engines, engines::close);
  }

  @Override
  public SSLEngine createClientSslEngine(String host, int port, String endpointIdentification) {
    SSLParameters parameters = settings.parameters();
    parameters.setEndpointIdentificationAlgorithm(endpointIdentification);
    Credentials now = identity.credentials();
    SSLEngine engine = clients.of(now).client(host, port, parameters);
    return new EndingEngine(engine, new ConnectionEnd(clock, now.endsAt(), true));
  }

  @Override
  public SSLEngine createServerSslEngine(String host, int port) {
    SSLParameters parameters = settings.parameters();
    parameters.setNeedClientAuth(true);
    Credentials now = identity.credentials();
    SSLEngine engine = servers.of(now).server(host, port, parameters);
    return new EndingEngine(engine, new ConnectionEnd(clock, now.endsAt(), false));
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
      clients.close();
      servers.close();
    }
  }
}
