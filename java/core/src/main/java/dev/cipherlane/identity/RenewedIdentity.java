package dev.cipherlane.identity;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.identity.CertificateSource.Issued;
import dev.cipherlane.identity.IdentitySettings.Files;
import dev.cipherlane.identity.IdentitySettings.Token;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keys.Term;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * A certificate from the key service, renewed by a thread of its own [CL-IDN-031]. Keys are made in
 * memory and stay there [CL-IDN-030]. Thread-safe.
 */
public final class RenewedIdentity implements Identity {
  private static final System.Logger LOG = System.getLogger(RenewedIdentity.class.getName());
  private static final double NANOS_PER_SECOND = 1e9;
  private static final double EARLIER = 0.1;
  // Looked at the lease clock again so often, because it may run on where waiting does not.
  private static final long LONGEST_WAIT = TimeUnit.SECONDS.toMillis(1);

  /** When to try, and how long to wait. */
  public record Timing(Duration backoff, Duration patience, LeaseClock clock) {}

  /**
   * What an identity leaves to a later one with the same settings, which goes on with it: a
   * bootstrap token serves once [CL-IDN-037]. Not to be shown to anybody.
   */
  public static final class Legacy {
    private final FirstProofs first;
    private final Held held;

    private Legacy(FirstProofs first, Held held) {
      this.first = first;
      this.held = held;
    }
  }

  /** What was had last, and until when. */
  private record Held(Credentials credentials, String principal) {}

  private final IdentitySettings settings;
  private final CertificateSource source;
  private final Timing timing;
  private final LeaseClock clock;
  private final FirstProofs first;
  private final Backoff backoff;
  private final Object lock = new Object();

  private volatile Held held; // written under the lock
  private CipherlaneException failure; // of the last attempt, if it failed; under the lock
  private boolean closed; // under the lock

  // Only the thread touches these.
  private Set<X509Certificate> configuredCas;
  private long nextAttempt;

  /**
   * Starts to ask for the first certificate.
   *
   * @param settings where it comes from; with {@code renew}
   * @param source gives certificates
   * @param timing when to try again, and the longest that {@link #credentials} waits for the first
   * @throws CipherlaneException {@code configuration-invalid} if the file with the CAs cannot be
   *     used
   */
  public RenewedIdentity(IdentitySettings settings, CertificateSource source, Timing timing) {
    this(settings, source, timing, null);
  }

  /**
   * Starts with what an earlier identity left, which it renews at once.
   *
   * @param settings where it comes from; with {@code renew}
   * @param source gives certificates
   * @param timing when to try again, and the longest that {@link #credentials} waits for the first
   * @param legacy of an identity with the same settings, or null
   * @throws CipherlaneException {@code configuration-invalid} if the file with the CAs cannot be
   *     used
   */
  public RenewedIdentity(
      IdentitySettings settings, CertificateSource source, Timing timing, Legacy legacy) {
    this.settings = settings;
    this.source = source;
    this.timing = timing;
    this.clock = timing.clock();
    this.first = legacy == null ? new FirstProofs(settings, clock) : legacy.first;
    this.held = legacy != null && holds(legacy.held) ? legacy.held : null;
    this.backoff = new Backoff(timing.backoff());
    this.configuredCas = PemFiles.cas(settings.ca());
    this.nextAttempt = clock.now();
    if (settings.first() instanceof Files files) {
      PemFiles.credentials(files.files(), clock); // a mistake is told here and not by the thread
    }
    Thread thread = new Thread(this::run, "cipherlane-identity");
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public Credentials credentials() {
    Held now = held;
    return holds(now) ? now.credentials() : waitForFirst();
  }

  private boolean holds(Held it) {
    return it != null && it.credentials().endsAt() > clock.now();
  }

  /** Waits while the outcome of the first attempt is not known; later failures are told at once. */
  private Credentials waitForFirst() {
    long giveUp = System.nanoTime() + timing.patience().toNanos();
    synchronized (lock) {
      try {
        while (undecided() && giveUp > System.nanoTime()) {
          long left = TimeUnit.NANOSECONDS.toMillis(giveUp - System.nanoTime());
          lock.wait(Math.min(left + 1, LONGEST_WAIT));
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new CipherlaneException(
            ErrorCode.CLOSED, "stopped while waiting for a certificate", e);
      }
      if (closed) {
        throw new CipherlaneException(ErrorCode.CLOSED, "its identity was closed");
      }
      if (holds(held)) {
        return held.credentials();
      }
      throw unavailable();
    }
  }

  private boolean undecided() {
    return held == null && failure == null && !closed;
  }

  private CipherlaneException unavailable() {
    String what = held == null ? "there is no certificate yet" : "the last certificate has ended";
    String why = failure == null ? "no answer so far" : failure.detail();
    return new CipherlaneException(
        ErrorCode.KEY_SERVICE_UNAVAILABLE,
        what + ": " + why + "; if this goes on, " + first.advice(),
        failure);
  }

  @Override
  public double secondsLeft() {
    Held now = held;
    return now == null ? Double.NaN : (now.credentials().endsAt() - clock.now()) / NANOS_PER_SECOND;
  }

  private void run() {
    while (pause()) {
      try {
        renew();
      } catch (CipherlaneException e) {
        failed(e);
      } catch (RuntimeException e) {
        failed(new CipherlaneException(ErrorCode.INTERNAL, "renewal failed", e));
      }
    }
  }

  /** Waits until the next attempt is due; false when closed. */
  private boolean pause() {
    synchronized (lock) {
      while (!closed) {
        long left = nextAttempt - clock.now();
        if (left <= 0) {
          return true;
        }
        try {
          lock.wait(Math.min(LONGEST_WAIT, TimeUnit.NANOSECONDS.toMillis(left) + 1));
        } catch (InterruptedException e) {
          // Nobody who means well interrupts it, and without it the certificate would end.
        }
      }
      return false;
    }
  }

  private void renew() {
    KeyPair keys = newKeys();
    String csr = Csr.pem(keys, settings.serverNames());
    configuredCas = PemFiles.cas(settings.ca());
    Proof proof = proof();
    Issued issued = ask(csr, proof);
    Optional<String> principal = principal(proof);
    AnswerCheck.Checked checked = AnswerCheck.check(issued, keys.getPublic(), principal);
    long now = clock.now();
    Term term = issued.term();
    take(
        new Held(
            new Credentials(checked.chain(), keys.getPrivate(), trust(checked), term.expiresAt()),
            checked.principal()));
    double share = ThreadLocalRandom.current().nextDouble(EARLIER);
    nextAttempt = term.renewedEarlier(now, share).refreshAt();
    LOG.log(
        System.Logger.Level.INFO,
        "got a certificate for {0} that holds for {1} s",
        checked.principal(),
        Math.round(secondsLeft()));
  }

  /** The JWT, else the certificate in use, else what the files hold [CL-IDN-035]. */
  private Proof proof() {
    Optional<Proof> jwt = first.jwt(trusted());
    if (jwt.isPresent()) {
      return jwt.get();
    }
    Held now = held;
    return holds(now) ? Proof.certificate(now.credentials()) : first.read(trusted());
  }

  /** The CAs of the last answer beside those configured [CL-IDN-034]. */
  private Set<X509Certificate> trusted() {
    Set<X509Certificate> all = new LinkedHashSet<>(configuredCas);
    if (held != null) {
      all.addAll(held.credentials().trust().keyService());
    }
    return all;
  }

  private Credentials.Trust trust(AnswerCheck.Checked checked) {
    Set<X509Certificate> keyService = new LinkedHashSet<>(configuredCas);
    keyService.addAll(checked.cas());
    return new Credentials.Trust(keyService, checked.cas());
  }

  private Issued ask(String csr, Proof proof) {
    try {
      Issued issued = source.certificate(csr, proof);
      first.spent(proof);
      return issued;
    } catch (CipherlaneException e) {
      if (e.code() == ErrorCode.UNAUTHENTICATED) {
        first.spent(proof);
      }
      throw e;
    }
  }

  private Optional<String> principal(Proof proof) {
    if (held != null) {
      return Optional.of(held.principal());
    }
    return proof.certificate().flatMap(own -> PrincipalName.of(own.leaf()));
  }

  private static KeyPair newKeys() {
    try {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
      generator.initialize(new ECGenParameterSpec("secp256r1"));
      return generator.generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this Java runtime has no P-256", e);
    }
  }

  private void take(Held next) {
    synchronized (lock) {
      held = next;
      failure = null;
      lock.notifyAll();
    }
    backoff.reset();
  }

  /**
   * Keeps what there is [CL-IDN-032]; at the start that may be the certificate of the PEM files.
   */
  private void failed(CipherlaneException e) {
    nextAttempt = clock.now() + backoff.next();
    Optional<Held> files = holds(held) ? Optional.empty() : ofFiles();
    synchronized (lock) {
      failure = e;
      files.ifPresent(found -> held = found);
      lock.notifyAll();
    }
    LOG.log(
        System.Logger.Level.WARNING,
        "no new certificate, which is tried again: {0}; {1}",
        e.getMessage(),
        holds(held)
            ? "the one in use holds for " + Math.round(secondsLeft()) + " s"
            : "none is left");
  }

  private Optional<Held> ofFiles() {
    if (!(settings.first() instanceof Files)) {
      return Optional.empty();
    }
    try {
      Credentials found = first.files();
      return PrincipalName.of(found.leaf()).map(name -> new Held(found, name));
    } catch (CipherlaneException e) {
      return Optional.empty(); // Also ended, or half-written.
    }
  }

  /**
   * What a later identity can begin with.
   *
   * @return empty where the first proof serves more than once
   */
  public Optional<Legacy> legacy() {
    return settings.first() instanceof Token
        ? Optional.of(new Legacy(first, held))
        : Optional.empty();
  }

  @Override
  public void close() {
    synchronized (lock) {
      closed = true;
      lock.notifyAll();
    }
  }
}
