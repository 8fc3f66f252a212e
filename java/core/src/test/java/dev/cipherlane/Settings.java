package dev.cipherlane;

import java.util.HashMap;
import java.util.Map;

/** Settings for tests that never reach a key service. */
public final class Settings {
  private Settings() {}

  /** All required settings, then names and values in turn. */
  public static Map<String, Object> map(Object... more) {
    Map<String, Object> settings = new HashMap<>();
    settings.put("cipherlane.keyservice.urls", "https://127.0.0.1:1");
    settings.put("cipherlane.keyservice.tls.ca", "ca.pem");
    settings.put("cipherlane.keyservice.tls.certificate", "certificate.pem");
    settings.put("cipherlane.keyservice.tls.key", "key.pem");
    for (int i = 0; i < more.length; i += 2) {
      settings.put((String) more[i], more[i + 1]);
    }
    return settings;
  }

  public static Configuration of(Object... more) {
    return Configuration.of(map(more));
  }
}
