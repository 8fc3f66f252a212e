package dev.cipherlane;

import dev.cipherlane.identity.IdentitySettings;
import dev.cipherlane.identity.IdentitySettings.Files;
import dev.cipherlane.identity.IdentitySettings.FirstProof;
import dev.cipherlane.identity.IdentitySettings.Jwt;
import dev.cipherlane.identity.IdentitySettings.Token;
import dev.cipherlane.identity.SpiffePatterns;
import dev.cipherlane.identity.TlsFiles;
import dev.cipherlane.keys.KeyLimits;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Map;

/**
 * The settings of {@code spec/configuration.md}, read once and refused as a whole if one is wrong
 * [CL-CFG-001] [CL-CFG-002].
 *
 * @param urls addresses of the key service, tried in turn
 * @param identity who asks
 * @param connectTimeout for one address
 * @param requestTimeout for one request to one address
 * @param keys limits of the caches
 * @param maxPlaintext longest plaintext, in bytes
 * @param writing what is done to records before they are encrypted
 * @param reading what is done with records that cannot be decrypted
 * @param peers of Kafka connections that use this identity
 */
public record Configuration(
    List<URI> urls,
    IdentitySettings identity,
    Duration connectTimeout,
    Duration requestTimeout,
    KeyLimits keys,
    int maxPlaintext,
    Writing writing,
    Reading reading,
    SpiffePatterns peers) {
  /**
   * What is done to records before they are encrypted.
   *
   * @param compressed topics whose values are compressed
   * @param compressedFrom bytes of the shortest value that is
   * @param keyBound topics whose values are bound to their record key
   */
  public record Writing(TopicPatterns compressed, int compressedFrom, TopicPatterns keyBound) {}

  /**
   * What is done with records that cannot be decrypted.
   *
   * @param action what
   * @param deadLetterTopic where dead letters go; {@value #TOPIC_MARK} stands for the record's
   *     topic
   */
  public record Reading(FailureAction action, String deadLetterTopic) {}

  /** Stands for the record's topic in {@code cipherlane.dead.letter.topic}. */
  public static final String TOPIC_MARK = "{topic}";

  private static final String PREFIX = "cipherlane.";
  private static final String URLS = "cipherlane.keyservice.urls";
  private static final String CA = "cipherlane.keyservice.tls.ca";
  private static final String CERTIFICATE = "cipherlane.keyservice.tls.certificate";
  private static final String KEY = "cipherlane.keyservice.tls.key";
  private static final String RENEW = "cipherlane.identity.renew";
  private static final String TOKEN_FILE = "cipherlane.identity.token.file";
  private static final String JWT_FILE = "cipherlane.identity.jwt.file";
  private static final String SERVER_NAMES = "cipherlane.tls.server.names";
  private static final String PEER_IDS = "cipherlane.tls.peer.ids";
  private static final String CONNECT_TIMEOUT = "cipherlane.keyservice.connect.timeout.ms";
  private static final String REQUEST_TIMEOUT = "cipherlane.keyservice.request.timeout.ms";
  private static final String DEADLINE = "cipherlane.keys.deadline.ms";
  private static final String BACKOFF = "cipherlane.keys.retry.backoff.ms";
  private static final String CACHE_MAX = "cipherlane.keys.cache.max";
  private static final String MAX_PLAINTEXT = "cipherlane.max.plaintext.bytes";
  private static final String COMPRESSION_TOPICS = "cipherlane.compression.topics";
  private static final String COMPRESSION_MIN = "cipherlane.compression.min.bytes";
  private static final String RECORD_KEY_TOPICS = "cipherlane.record.key.topics";

  /** Name of the setting of {@link Reading#action}. */
  public static final String FAILURE_ACTION = "cipherlane.failure.action";

  /** Name of the setting of {@link Reading#deadLetterTopic}. */
  public static final String DEAD_LETTER_TOPIC = "cipherlane.dead.letter.topic";

  /** Name of the serializer that {@code EncryptingSerializer} wraps. */
  public static final String VALUE_SERIALIZER = "cipherlane.value.serializer";

  /** Name of the deserializer that {@code DecryptingDeserializer} wraps. */
  public static final String VALUE_DESERIALIZER = "cipherlane.value.deserializer";

  /** Name of the converter that {@code EncryptingConverter} wraps. */
  public static final String VALUE_CONVERTER = "cipherlane.value.converter";

  /** Name of the setting that chooses the TLS engine of connections to Kafka. */
  public static final String TLS_ENGINE = "cipherlane.tls.engine";

  private static final List<String> NAMES =
      List.of(
          URLS,
          CA,
          CERTIFICATE,
          KEY,
          RENEW,
          TOKEN_FILE,
          JWT_FILE,
          SERVER_NAMES,
          PEER_IDS,
          TLS_ENGINE,
          CONNECT_TIMEOUT,
          REQUEST_TIMEOUT,
          DEADLINE,
          BACKOFF,
          CACHE_MAX,
          MAX_PLAINTEXT,
          COMPRESSION_TOPICS,
          COMPRESSION_MIN,
          RECORD_KEY_TOPICS,
          FAILURE_ACTION,
          DEAD_LETTER_TOPIC,
          VALUE_SERIALIZER,
          VALUE_DESERIALIZER,
          VALUE_CONVERTER);

  private static final int MINUTE_MS = 60_000;
  private static final int TEN_MINUTES_MS = 600_000;
  private static final int GIB = 1 << 30;
  private static final int MIB = 1 << 20;
  private static final int KIB = 1 << 10;

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
    SettingsReader read = new SettingsReader(settings);
    return new Configuration(
        read.urls(URLS),
        identity(read),
        read.millis(CONNECT_TIMEOUT, MINUTE_MS, 2_000),
        read.millis(REQUEST_TIMEOUT, MINUTE_MS, 5_000),
        new KeyLimits(
            read.millis(DEADLINE, TEN_MINUTES_MS, 10_000),
            read.millis(BACKOFF, MINUTE_MS, 500),
            read.integer(CACHE_MAX, 16, 1_000_000, 10_000)),
        read.integer(MAX_PLAINTEXT, 1, GIB, 64 * MIB),
        new Writing(
            read.topics(COMPRESSION_TOPICS),
            read.integer(COMPRESSION_MIN, 0, GIB, KIB),
            read.topics(RECORD_KEY_TOPICS)),
        new Reading(read.failureAction(FAILURE_ACTION), read.deadLetterTopic(DEAD_LETTER_TOPIC)),
        read.spiffePatterns(PEER_IDS));
  }

  private static IdentitySettings identity(SettingsReader read) {
    FirstProof first = firstProof(read);
    boolean tokens = !(first instanceof Files);
    boolean renew = read.truth(RENEW, tokens);
    if (tokens && !renew) {
      throw SettingsReader.invalid(RENEW, "a token or JWT gives certificates that are renewed");
    }
    List<String> serverNames = read.serverNames(SERVER_NAMES);
    if (!renew && !serverNames.isEmpty()) {
      throw SettingsReader.invalid(SERVER_NAMES, "goes with " + RENEW + " only");
    }
    return new IdentitySettings(read.path(CA), first, renew, serverNames);
  }

  private static FirstProof firstProof(SettingsReader read) {
    if (read.has(TOKEN_FILE)) {
      for (String other : List.of(JWT_FILE, CERTIFICATE, KEY)) {
        if (read.has(other)) {
          throw SettingsReader.invalid(other, "not beside " + TOKEN_FILE);
        }
      }
      return new Token(read.path(TOKEN_FILE));
    }
    return read.has(JWT_FILE)
        ? new Jwt(read.path(JWT_FILE))
        : new Files(new TlsFiles(read.path(CA), read.path(CERTIFICATE), read.path(KEY)));
  }

  private static void refuseUnknown(Map<String, ?> settings) {
    for (String name : settings.keySet()) {
      if (name.startsWith(PREFIX) && !NAMES.contains(name)) {
        throw SettingsReader.invalid(
            name, "unknown; the nearest known name is " + NearestName.of(name, NAMES));
      }
    }
  }
}
