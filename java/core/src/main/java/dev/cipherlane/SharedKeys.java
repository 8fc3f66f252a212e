package dev.cipherlane;

import dev.cipherlane.cipher.DerivedKeys;
import dev.cipherlane.identity.Identity;
import dev.cipherlane.identity.IdentitySettings;
import dev.cipherlane.keys.CountedKeySource;
import dev.cipherlane.keys.DecryptionKeys;
import dev.cipherlane.keys.EncryptionKeys;
import dev.cipherlane.keys.KeyLimits;
import dev.cipherlane.keys.KeyNumbers;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keyservice.KeyServiceClient;
import java.net.URI;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.DoubleSupplier;

/**
 * The client of the key service and the caches of keys: one in this Java machine for each
 * configuration, however many encryptors and decryptors use it. The last to leave closes it.
 * Thread-safe.
 */
final class SharedKeys implements KeyNumbers {
  /** All that a configuration says of keys: who agrees in this may share them. */
  private record Id(
      List<URI> urls,
      IdentitySettings identity,
      Duration connectTimeout,
      Duration requestTimeout,
      KeyLimits limits) {
    static Id of(Configuration configuration) {
      return new Id(
          configuration.urls(),
          configuration.identity(),
          configuration.connectTimeout(),
          configuration.requestTimeout(),
          configuration.keys());
    }
  }

  private static final Map<Id, SharedKeys> OPEN = new HashMap<>();
  private static final double NANOS_PER_SECOND = 1e9;

  private final Id id;
  private final CountedKeySource source;
  private final LeaseClock clock;
  private final DoubleSupplier certificate;
  private final KeyLimits limits;
  private final DerivedKeys derivedKeys = new DerivedKeys();
  private int users;
  private volatile EncryptionKeys encryption;
  private volatile DecryptionKeys decryption;

  private SharedKeys(
      Id id, KeySource source, LeaseClock clock, DoubleSupplier certificate, KeyLimits limits) {
    this.id = id;
    this.source = new CountedKeySource(source);
    this.clock = clock;
    this.certificate = certificate;
    this.limits = limits;
  }

  /**
   * Makes or finds what a configuration needs.
   *
   * @throws CipherlaneException {@code configuration-invalid} if a file cannot be used
   */
  static SharedKeys of(Configuration configuration) {
    synchronized (OPEN) {
      SharedKeys keys = OPEN.computeIfAbsent(Id.of(configuration), id -> open(id, configuration));
      keys.users++;
      return keys;
    }
  }

  private static SharedKeys open(Id id, Configuration configuration) {
    LeaseClock clock = LeaseClock.system();
    Identity identity = SharedIdentity.of(configuration);
    KeySource source =
        new KeyServiceClient(id.urls(), identity, id.connectTimeout(), id.requestTimeout(), clock);
    return new SharedKeys(id, source, clock, identity::secondsLeft, id.limits());
  }

  /** Shared with nobody. */
  static SharedKeys alone(KeySource source, LeaseClock clock, KeyLimits limits) {
    SharedKeys keys = new SharedKeys(null, source, clock, () -> Double.NaN, limits);
    keys.users = 1;
    return keys;
  }

  LeaseClock clock() {
    return clock;
  }

  DerivedKeys derivedKeys() {
    return derivedKeys;
  }

  synchronized EncryptionKeys encryption() {
    if (encryption == null) {
      encryption = new EncryptionKeys(source, clock, limits);
    }
    return encryption;
  }

  synchronized DecryptionKeys decryption() {
    if (decryption == null) {
      decryption = new DecryptionKeys(source, clock, limits, derivedKeys::forget);
    }
    return decryption;
  }

  /** To be called once by each user. The last one wipes all keys. */
  void leave() {
    synchronized (OPEN) {
      if (--users > 0) {
        return;
      }
      OPEN.remove(id, this);
    }
    // Without the lock: a last report may take a second.
    if (encryption != null) {
      encryption.close();
    }
    if (decryption != null) {
      decryption.close();
    }
    source.close();
  }

  @Override
  public long requests() {
    return source.requests();
  }

  @Override
  public long failures() {
    return source.failures();
  }

  @Override
  public long cached() {
    return (encryption == null ? 0 : encryption.held())
        + (decryption == null ? 0 : decryption.held());
  }

  @Override
  public double certificateSecondsLeft() {
    return certificate.getAsDouble();
  }

  @Override
  public double leaseSecondsLeft() {
    long now = clock.now();
    long left =
        Math.min(
            encryption == null ? Long.MAX_VALUE : encryption.expire(now),
            decryption == null ? Long.MAX_VALUE : decryption.expire(now));
    return left == Long.MAX_VALUE ? Double.NaN : left / NANOS_PER_SECOND;
  }
}
