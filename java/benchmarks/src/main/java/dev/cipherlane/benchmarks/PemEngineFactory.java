package dev.cipherlane.benchmarks;

import dev.cipherlane.transport.CipherlaneSslEngineFactory;
import dev.cipherlane.transport.engine.EngineKind;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.SSLEngine;
import org.apache.kafka.common.security.auth.SslEngineFactory;

/**
 * {@link CipherlaneSslEngineFactory} with one kind of engine and the PEM files that lie beside
 * {@code ssl.keystore.location}: Kafka has only settings of its own differ from listener to
 * listener.
 */
public abstract class PemEngineFactory implements SslEngineFactory {
  private final CipherlaneSslEngineFactory factory = new CipherlaneSslEngineFactory();
  private final EngineKind kind;

  private PemEngineFactory(EngineKind kind) {
    this.kind = kind;
  }

  /** Gives the name of the class whose engines are of a kind. */
  static String of(EngineKind kind) {
    Class<?> factory =
        switch (kind) {
          case AUTO -> Auto.class;
          case JDK -> Jdk.class;
          case BORINGSSL -> BoringSsl.class;
          case JDK_PLAIN -> JdkPlain.class;
        };
    return factory.getName();
  }

  @Override
  public void configure(Map<String, ?> given) {
    Path keys = Path.of((String) given.get("ssl.keystore.location"));
    Map<String, Object> settings = new HashMap<>(given);
    settings.put("cipherlane.tls.engine", kind.toString());
    settings.put("cipherlane.keyservice.urls", "https://127.0.0.1:1"); // never asked
    settings.put("cipherlane.keyservice.tls.ca", keys.resolveSibling("ca.pem").toString());
    settings.put(
        "cipherlane.keyservice.tls.certificate", keys.resolveSibling("client.pem").toString());
    settings.put("cipherlane.keyservice.tls.key", keys.resolveSibling("client-key.pem").toString());
    factory.configure(settings);
  }

  @Override
  public SSLEngine createClientSslEngine(String host, int port, String endpointIdentification) {
    return factory.createClientSslEngine(host, port, endpointIdentification);
  }

  @Override
  public SSLEngine createServerSslEngine(String host, int port) {
    return factory.createServerSslEngine(host, port);
  }

  @Override
  public boolean shouldBeRebuilt(Map<String, Object> nextConfigs) {
    return factory.shouldBeRebuilt(nextConfigs);
  }

  @Override
  public Set<String> reconfigurableConfigs() {
    return factory.reconfigurableConfigs();
  }

  @Override
  public KeyStore keystore() {
    return factory.keystore();
  }

  @Override
  public KeyStore truststore() {
    return factory.truststore();
  }

  @Override
  public void close() {
    factory.close();
  }

  /** Of {@link EngineKind#AUTO}. */
  public static final class Auto extends PemEngineFactory {
    /** For Kafka. */
    public Auto() {
      super(EngineKind.AUTO);
    }
  }

  /** Of {@link EngineKind#JDK}. */
  public static final class Jdk extends PemEngineFactory {
    /** For Kafka. */
    public Jdk() {
      super(EngineKind.JDK);
    }
  }

  /** Of {@link EngineKind#BORINGSSL}. */
  public static final class BoringSsl extends PemEngineFactory {
    /** For Kafka. */
    public BoringSsl() {
      super(EngineKind.BORINGSSL);
    }
  }

  /** Of {@link EngineKind#JDK_PLAIN}. */
  public static final class JdkPlain extends PemEngineFactory {
    /** For Kafka. */
    public JdkPlain() {
      super(EngineKind.JDK_PLAIN);
    }
  }
}
