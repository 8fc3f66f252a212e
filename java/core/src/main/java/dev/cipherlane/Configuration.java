package dev.cipherlane;

import dev.cipherlane.keys.KeyLimits;
import dev.cipherlane.keyservice.TlsFiles;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * The settings of {@code spec/configuration.md}, read once and refused as a whole if one is wrong
 * [CL-CFG-001] [CL-CFG-002].
 *
 * @param urls addresses of the key service, tried in turn
 * @param tls PEM files
 * @param connectTimeout for one address
 * @param requestTimeout for one request to one address
 * @param keys limits of the caches
 * @param maxPlaintext longest plaintext, in bytes
 */
public record Configuration(
    List<URI> urls,
    TlsFiles tls,
    Duration connectTimeout,
    Duration requestTimeout,
    KeyLimits keys,
    int maxPlaintext) {
  private static final String PREFIX = "cipherlane.";
  private static final String URLS = "cipherlane.keyservice.urls";
  private static final String CA = "cipherlane.keyservice.tls.ca";
  private static final String CERTIFICATE = "cipherlane.keyservice.tls.certificate";
  private static final String KEY = "cipherlane.keyservice.tls.key";
  private static final String CONNECT_TIMEOUT = "cipherlane.keyservice.connect.timeout.ms";
  private static final String REQUEST_TIMEOUT = "cipherlane.keyservice.request.timeout.ms";
  private static final String DEADLINE = "cipherlane.keys.deadline.ms";
  private static final String BACKOFF = "cipherlane.keys.retry.backoff.ms";
  private static final String CACHE_MAX = "cipherlane.keys.cache.max";
  private static final String MAX_PLAINTEXT = "cipherlane.max.plaintext.bytes";
  private static final String FAILURE_ACTION = "cipherlane.failure.action";

  /** Name of the serializer that {@code EncryptingSerializer} wraps. */
  public static final String VALUE_SERIALIZER = "cipherlane.value.serializer";

  /** Name of the deserializer that {@code DecryptingDeserializer} wraps. */
  public static final String VALUE_DESERIALIZER = "cipherlane.value.deserializer";

  private static final List<String> NAMES =
      List.of(
          URLS,
          CA,
          CERTIFICATE,
          KEY,
          CONNECT_TIMEOUT,
          REQUEST_TIMEOUT,
          DEADLINE,
          BACKOFF,
          CACHE_MAX,
          MAX_PLAINTEXT,
          FAILURE_ACTION,
          VALUE_SERIALIZER,
          VALUE_DESERIALIZER);

  private static final int MINUTE_MS = 60_000;
  private static final int TEN_MINUTES_MS = 600_000;
  private static final int GIB = 1 << 30;
  private static final int MIB = 1 << 20;

  /**
   * Reads the settings.
   *
   * @param settings all properties of a client; those that do not start with {@code cipherlane.}
   *     are not looked at
   * @return the settings, with defaults filled in
   * @throws CipherlaneException {@code configuration-invalid}, naming the setting
   */
  public static Configuration of(Map<String, ?> settings) {
    refuseUnknown(settings);
    refuseFailureAction(settings);
    return new Configuration(
        urls(text(settings, URLS)),
        new TlsFiles(path(settings, CA), path(settings, CERTIFICATE), path(settings, KEY)),
        millis(settings, CONNECT_TIMEOUT, MINUTE_MS, 2_000),
        millis(settings, REQUEST_TIMEOUT, MINUTE_MS, 5_000),
        new KeyLimits(
            millis(settings, DEADLINE, TEN_MINUTES_MS, 10_000),
            millis(settings, BACKOFF, MINUTE_MS, 500),
            integer(settings, CACHE_MAX, 16, 1_000_000, 10_000)),
        integer(settings, MAX_PLAINTEXT, 1, GIB, 64 * MIB));
  }

  private static void refuseUnknown(Map<String, ?> settings) {
    for (String name : settings.keySet()) {
      if (name.startsWith(PREFIX) && !NAMES.contains(name)) {
        throw invalid(name, "unknown; the nearest known name is " + NearestName.of(name, NAMES));
      }
    }
  }

  private static void refuseFailureAction(Map<String, ?> settings) {
    Object action = settings.get(FAILURE_ACTION);
    if (action != null && !"fail".equals(action)) {
      throw invalid(FAILURE_ACTION, "takes fail, and nothing else yet");
    }
  }

  private static String text(Map<String, ?> settings, String name) {
    if (settings.get(name) instanceof String text && !text.isBlank()) {
      return text.strip();
    }
    throw invalid(name, "required");
  }

  private static List<URI> urls(String list) {
    return Arrays.stream(list.split(",", -1)).map(String::strip).map(Configuration::url).toList();
  }

  private static URI url(String text) {
    try {
      URI url = new URI(text);
      boolean bare =
          url.getRawQuery() == null
              && url.getRawFragment() == null
              && url.getRawUserInfo() == null
              && (url.getRawPath().isEmpty() || url.getRawPath().equals("/"));
      if ("https".equals(url.getScheme()) && url.getHost() != null && bare && url.getPort() != 0) {
        return url;
      }
    } catch (URISyntaxException | NullPointerException e) {
      // Said below, for every mistake alike.
    }
    throw invalid(URLS, "takes https://host:port, several separated by commas");
  }

  private static Path path(Map<String, ?> settings, String name) {
    try {
      return Path.of(text(settings, name));
    } catch (InvalidPathException e) {
      throw invalid(name, "takes the path of a PEM file");
    }
  }

  private static Duration millis(Map<String, ?> settings, String name, int max, int otherwise) {
    return Duration.ofMillis(integer(settings, name, 1, max, otherwise));
  }

  private static int integer(
      Map<String, ?> settings, String name, int min, int max, int otherwise) {
    Object value = settings.get(name);
    if (value == null) {
      return otherwise;
    }
    try {
      int number = Integer.parseInt(value.toString().strip());
      if (number >= min && number <= max) {
        return number;
      }
    } catch (NumberFormatException e) {
      // Said below, for every mistake alike.
    }
    throw invalid(name, "takes an integer from " + min + " to " + max);
  }

  private static CipherlaneException invalid(String name, String why) {
    return new CipherlaneException(ErrorCode.CONFIGURATION_INVALID, "setting " + name + ": " + why);
  }
}
