package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.security.KeyStore;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.SSLEngine;
import org.apache.kafka.common.security.auth.SslEngineFactory;
import org.apache.kafka.common.security.ssl.DefaultSslEngineFactory;
import org.apache.kafka.common.utils.Utils;

/**
 * Another factory's engines for clients. Where sessions are not to be resumed it names another port
 * each time: engines look for a session by host and port.
 */
public final class HandshakeEngineFactory implements SslEngineFactory {
  private static final String FACTORY = "ssl.engine.factory.class";
  private static final String WRAPPED = "bench.ssl.engine.factory.class";
  private static final String RESUMING = "bench.resuming";
  private static final int PORTS = 65_535;
  // BoringSSL's sessions tell their time in whole seconds.
  private static final long OLD_MS = 1_000;
  private static final ThreadLocal<Made> LAST = new ThreadLocal<>();

  private SslEngineFactory wrapped;
  private boolean resuming;
  private int connections;

  private record Made(SSLEngine engine, long atMs) {}

  /** Puts it into a client's settings, around what is there. */
  static void wrap(Map<String, String> settings, boolean resuming) {
    String factory = settings.get(FACTORY);
    settings.put(WRAPPED, factory == null ? DefaultSslEngineFactory.class.getName() : factory);
    settings.put(RESUMING, String.valueOf(resuming));
    settings.put(FACTORY, HandshakeEngineFactory.class.getName());
  }

  /** Whether this thread's last connection went on with a session that is older than it. */
  static boolean resumed() {
    Made last = LAST.get();
    return last != null && last.engine.getSession().getCreationTime() < last.atMs - OLD_MS;
  }

  @Override
  public void configure(Map<String, ?> configs) {
    try {
      wrapped = Utils.newInstance((String) configs.get(WRAPPED), SslEngineFactory.class);
    } catch (ClassNotFoundException e) {
      throw new IllegalArgumentException(e);
    }
    wrapped.configure(configs);
    resuming = Boolean.parseBoolean((String) configs.get(RESUMING));
  }

  @Override
  public SSLEngine createClientSslEngine(String host, int port, String endpointIdentification) {
    int named = resuming ? port : 1 + connections++ % PORTS;
    SSLEngine engine = wrapped.createClientSslEngine(host, named, endpointIdentification);
    LAST.set(new Made(engine, System.currentTimeMillis()));
    return engine;
  }

  @Override
  public SSLEngine createServerSslEngine(String host, int port) {
    return wrapped.createServerSslEngine(host, port);
  }

  @Override
  public boolean shouldBeRebuilt(Map<String, Object> nextConfigs) {
    return wrapped.shouldBeRebuilt(nextConfigs);
  }

  @Override
  public Set<String> reconfigurableConfigs() {
    return wrapped.reconfigurableConfigs();
  }

  @Override
  public KeyStore keystore() {
    return wrapped.keystore();
  }

  @Override
  public KeyStore truststore() {
    return wrapped.truststore();
  }

  @Override
  public void close() throws IOException {
    wrapped.close();
  }
}
