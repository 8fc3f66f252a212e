package dev.cipherlane.transport.engine;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** The values of the setting {@value #SETTING}. */
public enum EngineKind {
  /** The default: {@link #BORINGSSL} where it loads, {@link #JDK} elsewhere. */
  AUTO,
  /** The JDK's engine, with several TLS records in each wrap and unwrap. */
  JDK,
  /** BoringSSL, with several TLS records in each wrap and unwrap. */
  BORINGSSL,
  /** The JDK's engine as it is, one TLS record at a time. */
  JDK_PLAIN;

  /** The name of the setting. */
  public static final String SETTING = "cipherlane.tls.engine";

  /**
   * Reads the setting's value.
   *
   * @param value for example {@code jdk-plain}
   * @return the kind of that name
   * @throws IllegalArgumentException if there is none; the message names the setting and its values
   */
  public static EngineKind of(String value) {
    return Arrays.stream(values())
        .filter(kind -> kind.toString().equals(value))
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException(SETTING + " must be one of " + names()));
  }

  private static String names() {
    return Arrays.stream(values()).map(EngineKind::toString).collect(Collectors.joining(", "));
  }

  /** Returns the setting's value, for example {@code jdk-plain}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
