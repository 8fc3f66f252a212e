package dev.cipherlane.benchmarks;

import dev.cipherlane.transport.engine.EngineKind;
import dev.cipherlane.transport.engine.KeyFiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/** How client and broker are connected. */
enum TransportRow implements Labelled {
  /** Without TLS. */
  PLAINTEXT(""),
  /** Kafka as it comes. */
  JDK_TLS(""),
  /** Netty's engine over BoringSSL as it comes. */
  NETTY("ssl.engine.factory.class=dev.cipherlane.transport.engine.NettyEngineFactory"),
  /**
   * WildFly OpenSSL as Kafka's provider; it has TLS 1.3 only where its cipher suites are named, and
   * keys of RSA only.
   */
  WILDFLY(
      "security.providers=dev.cipherlane.benchmarks.WildflyProvider,ssl.provider=wildfly"
          + ",ssl.protocol=openssl.TLS,ssl.cipher.suites=TLS_AES_256_GCM_SHA384"),
  /**
   * What users have, {@code cipherlane.tls.engine=auto}, or the kind that the property {@code
   * engine} names.
   */
  CIPHERLANE_TLS(cipherlane(System.getProperty("engine", "auto"))),
  /** {@code cipherlane.tls.engine=jdk}. */
  CIPHERLANE_JDK(cipherlane("jdk"));

  private static final String PASSWORD = "changeit";
  private static final String FACTORY = "ssl.engine.factory.class";

  private final String settings;

  /**
   * A row.
   *
   * @param settings beside those for the keys, as {@code a=b,c=d}
   */
  TransportRow(String settings) {
    this.settings = settings;
  }

  private static String cipherlane(String engine) {
    return FACTORY + "=" + PemEngineFactory.of(EngineKind.of(engine));
  }

  /** The first, which is the baseline, and those that the property {@code row} leaves and work. */
  static List<TransportRow> chosen(TransportRow... rows) {
    List<TransportRow> chosen = new ArrayList<>();
    for (TransportRow row : rows) {
      if ((chosen.isEmpty() || Choice.leaves("row", row.label())) && row.works()) {
        chosen.add(row);
      }
    }
    return chosen;
  }

  private boolean works() {
    Optional<String> missing = this == WILDFLY ? WildflyProvider.missing() : Optional.empty();
    missing.ifPresent(why -> System.err.println("without the row " + label() + ": " + why));
    return missing.isEmpty();
  }

  @Override
  public String label() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  String keyAlgorithm() {
    return this == WILDFLY ? "RSA" : "EC";
  }

  /** The broker's options for its listener. */
  List<String> listener(KeyFiles keys) {
    if (this == PLAINTEXT) {
      return List.of();
    }
    List<String> options = new ArrayList<>(List.of("--listener", name() + ":SSL"));
    String prefix = "listener.name." + name().toLowerCase(Locale.ROOT) + ".";
    ssl(keys.server())
        .forEach((name, value) -> options.addAll(List.of("--set", prefix + name + "=" + value)));
    options.addAll(List.of("--set", prefix + "ssl.client.auth=required"));
    return options;
  }

  /** A client's settings. */
  Map<String, String> client(KeyFiles keys) {
    Map<String, String> client = new TreeMap<>();
    if (this != PLAINTEXT) {
      client.put("security.protocol", "SSL");
      client.putAll(ssl(keys.client()));
    }
    return client;
  }

  private Map<String, String> ssl(Path keys) {
    Map<String, String> ssl = new TreeMap<>();
    Settings.add(ssl, settings);
    ssl.put("ssl.keystore.location", keys.toString());
    if (!ssl.containsKey(FACTORY)) {
      ssl.put("ssl.keystore.type", "PKCS12");
      ssl.put("ssl.keystore.password", PASSWORD);
      ssl.put("ssl.key.password", PASSWORD);
      ssl.put("ssl.truststore.type", "PKCS12");
      ssl.put("ssl.truststore.location", keys.toString());
      ssl.put("ssl.truststore.password", PASSWORD);
    }
    return ssl;
  }
}
