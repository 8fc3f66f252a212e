package dev.cipherlane.transport.engine;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import org.apache.kafka.common.config.SslConfigs;
import org.apache.kafka.common.security.auth.SslEngineFactory;

/**
 * Gives Kafka's clients and brokers of tests and benchmarks these engines: with the key and the
 * authority of the PKCS #12 file {@code ssl.keystore.location}, and the kind {@code
 * cipherlane.tls.engine}.
 */
public class KeyStoreEngineFactory implements SslEngineFactory {
  private TlsEngines engines;
  private String[] protocols;

  @Override
  public void configure(Map<String, ?> configs) {
    protocols =
        ((List<?>) configs.get(SslConfigs.SSL_ENABLED_PROTOCOLS_CONFIG))
            .stream().map(Object::toString).toArray(String[]::new);
    engines = engines(configs);
  }

  /** Gives the engines that settings ask for. */
  TlsEngines engines(Map<String, ?> configs) {
    Object kind = configs.get(EngineKind.SETTING);
    try {
      Keys keys = Keys.load(Path.of((String) configs.get("ssl.keystore.location")));
      return engines(keys, kind == null ? EngineKind.AUTO : EngineKind.of((String) kind));
    } catch (IOException | GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  /** Gives the engines of a kind. */
  TlsEngines engines(Keys keys, EngineKind kind) {
    return keys.engines(kind);
  }

  @Override
  public SSLEngine createClientSslEngine(String host, int port, String endpointIdentification) {
    SSLParameters parameters = new SSLParameters(null, protocols);
    parameters.setEndpointIdentificationAlgorithm(endpointIdentification);
    return engines.client(host, port, parameters);
  }

  @Override
  public SSLEngine createServerSslEngine(String host, int port) {
    SSLParameters parameters = new SSLParameters(null, protocols);
    parameters.setNeedClientAuth(true);
    return engines.server(host, port, parameters);
  }

  @Override
  public boolean shouldBeRebuilt(Map<String, Object> nextConfigs) {
    return false;
  }

  @Override
  public Set<String> reconfigurableConfigs() {
    return Set.of();
  }

  @Override
  public KeyStore keystore() {
    return null;
  }

  @Override
  public KeyStore truststore() {
    return null;
  }

  @Override
  public void close() {
    engines.close();
  }
}
