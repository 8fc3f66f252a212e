package dev.cipherlane.benchmarks;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** How client and broker are connected; the baseline comes first. */
enum TransportRow {
  /** Without TLS. */
  PLAINTEXT(""),
  /** Kafka as it comes. */
  JDK_TLS(""),
  /** Netty's engine over BoringSSL as it comes. */
  NETTY("dev.cipherlane.transport.engine.NettyEngineFactory"),
  /** {@code cipherlane.tls.engine=auto}, or the kind that the property {@code engine} names. */
  CIPHERLANE_TLS("dev.cipherlane.transport.engine.KeyStoreEngineFactory");

  private static final String PASSWORD = "changeit";
  private static final String ONLY = System.getProperty("row", "");
  private static final String ENGINE = System.getProperty("engine", "auto");

  private final String factory;

  TransportRow(String factory) {
    this.factory = factory;
  }

  /** The baseline, and those that the property {@code row} leaves. */
  static List<TransportRow> chosen() {
    return Arrays.stream(values())
        .filter(
            row ->
                row == PLAINTEXT
                    || ONLY.isEmpty()
                    || List.of(ONLY.split(",")).contains(row.label()))
        .toList();
  }

  String label() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** The broker's options for its listener. */
  List<String> listener(Path keys) {
    if (this == PLAINTEXT) {
      return List.of();
    }
    List<String> options = new ArrayList<>(List.of("--listener", name() + ":SSL"));
    String prefix = "listener.name." + name().toLowerCase(Locale.ROOT) + ".";
    ssl(keys)
        .forEach((name, value) -> options.addAll(List.of("--set", prefix + name + "=" + value)));
    options.addAll(List.of("--set", prefix + "ssl.client.auth=required"));
    return options;
  }

  /** A client's settings. */
  Map<String, String> client(Path keys) {
    Map<String, String> settings = new TreeMap<>();
    if (this != PLAINTEXT) {
      settings.put("security.protocol", "SSL");
      settings.putAll(ssl(keys));
    }
    return settings;
  }

  private Map<String, String> ssl(Path keys) {
    Map<String, String> settings = new TreeMap<>();
    settings.put("ssl.keystore.location", keys.toString());
    if (factory.isEmpty()) {
      settings.put("ssl.keystore.type", "PKCS12");
      settings.put("ssl.keystore.password", PASSWORD);
      settings.put("ssl.key.password", PASSWORD);
      settings.put("ssl.truststore.type", "PKCS12");
      settings.put("ssl.truststore.location", keys.toString());
      settings.put("ssl.truststore.password", PASSWORD);
    } else {
      settings.put("ssl.engine.factory.class", factory);
      settings.put("cipherlane.tls.engine", ENGINE);
    }
    return settings;
  }
}
