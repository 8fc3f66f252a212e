package dev.cipherlane;

import dev.cipherlane.identity.Credentials;
import dev.cipherlane.identity.Identity;
import dev.cipherlane.identity.IdentityBean;
import dev.cipherlane.identity.IdentitySettings;
import dev.cipherlane.identity.IdentitySettings.Files;
import dev.cipherlane.identity.PemIdentity;
import dev.cipherlane.identity.RenewedIdentity;
import dev.cipherlane.keys.KeyLimits;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keyservice.CertificateClient;
import java.net.URI;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * The identity of a configuration: one in this Java machine, however many clients have it, so that
 * there is one renewal for all of them [CL-IDN-031]. The last to close it ends it; where it began
 * with a bootstrap token, the next goes on with its certificate [CL-IDN-037]. Thread-safe.
 */
public final class SharedIdentity implements Identity {
  /** Who agrees in this shares an identity; the timeouts are those of the first. */
  private record Id(List<URI> urls, IdentitySettings identity) {}

  /** An identity and how many have it; the number is guarded by {@link #OPEN}. */
  private static final class Open {
    private final Identity identity;
    private final IdentityBean shown;
    private int users;

    Open(Identity identity) {
      this.identity = identity;
      this.shown = new IdentityBean(identity);
    }
  }

  private static final Map<Id, Open> OPEN = new HashMap<>();
  private static final Map<Id, RenewedIdentity.Legacy> LEFT = new HashMap<>(); // under OPEN

  private final Id id;
  private final Open open;
  private final AtomicBoolean closed = new AtomicBoolean();

  private SharedIdentity(Id id, Open open) {
    this.id = id;
    this.open = open;
  }

  /**
   * Makes or finds the identity of a configuration.
   *
   * @param configuration says where it comes from
   * @return to be closed by who asked
   * @throws CipherlaneException {@code configuration-invalid} if a file cannot be used
   */
  public static Identity of(Configuration configuration) {
    Id id = new Id(configuration.urls(), configuration.identity());
    synchronized (OPEN) {
      Open open = OPEN.computeIfAbsent(id, any -> new Open(make(configuration, LEFT.get(id))));
      open.users++;
      return new SharedIdentity(id, open);
    }
  }

  private static Identity make(Configuration configuration, RenewedIdentity.Legacy legacy) {
    LeaseClock clock = LeaseClock.system();
    IdentitySettings settings = configuration.identity();
    if (!settings.renew() && settings.first() instanceof Files files) {
      return new PemIdentity(files.files(), clock);
    }
    var source =
        new CertificateClient(
            configuration.urls(),
            configuration.connectTimeout(),
            configuration.requestTimeout(),
            clock);
    KeyLimits limits = configuration.keys();
    return new RenewedIdentity(
        settings,
        source,
        new RenewedIdentity.Timing(limits.backoff(), limits.deadline(), clock),
        legacy);
  }

  @Override
  public Credentials credentials() {
    return open.identity.credentials();
  }

  @Override
  public double secondsLeft() {
    return open.identity.secondsLeft();
  }

  @Override
  public void close() {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    synchronized (OPEN) {
      if (--open.users > 0) {
        return;
      }
      OPEN.remove(id, open);
      if (open.identity instanceof RenewedIdentity renewed) {
        renewed.legacy().ifPresent(legacy -> LEFT.put(id, legacy));
      }
    }
    open.shown.close();
    open.identity.close();
  }
}
