package dev.cipherlane.keys;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.cipher.EncryptingSession;
import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.cipher.Secret;
import dev.cipherlane.envelope.Header;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * A handle on a data key: its id, its scope, the encrypting sessions that run under it, and how
 * much was encrypted. It goes on until it is wiped; it never shows the key [CL-KEY-015].
 * Thread-safe.
 */
public final class DataKey {
  private static final int FLAGS = 8;

  private final KeyId kid;
  private final String scope;
  private final Secret secret;
  private final Header header;
  // By flags; made when first needed, by several threads alike.
  private final AtomicReferenceArray<Header> flagged = new AtomicReferenceArray<>(FLAGS);

  // Keys that only decrypt have none.
  private volatile Sessions sessions;

  private DataKey(KeyId kid, String scope, Secret secret) {
    this.kid = kid;
    this.scope = scope;
    this.secret = secret;
    this.header = Header.of(0, kid, scope);
  }

  /**
   * Takes a key over and checks that it is the one that the kid names.
   *
   * @param kid the key id that it should have
   * @param scope the scope, 1 to 249 bytes
   * @param bytes the key; the array is wiped
   * @return the handle
   * @throws CipherlaneException {@code key-malformed} or {@code key-id-mismatch} [CL-KEY-004]
   *     [CL-ENV-009]
   */
  public static DataKey of(KeyId kid, String scope, byte[] bytes) {
    if (bytes.length != Secret.SIZE) {
      String detail = "the key service gave " + bytes.length + " bytes, of 32";
      java.util.Arrays.fill(bytes, (byte) 0);
      throw new CipherlaneException(ErrorCode.KEY_MALFORMED, null, kid, detail, null);
    }
    Secret secret = Secret.take(bytes);
    if (!KeyId.of(secret).equals(kid)) {
      secret.destroy();
      throw new CipherlaneException(
          ErrorCode.KEY_ID_MISMATCH, null, kid, "the key given has another id", null);
    }
    return new DataKey(kid, scope, secret);
  }

  /**
   * Gives the key id.
   *
   * @return the id, recomputed from the key
   */
  public KeyId kid() {
    return kid;
  }

  /**
   * Gives the scope.
   *
   * @return its name
   */
  public String scope() {
    return scope;
  }

  /**
   * Gives the start of envelopes without flags, and their additional data.
   *
   * @return the same one every time
   */
  public Header header() {
    return header;
  }

  /**
   * Gives the start of envelopes with some flags, and their additional data.
   *
   * @param flags known bits of {@link dev.cipherlane.envelope.Envelope}
   * @return the same one every time
   */
  public Header header(int flags) {
    if (flags == 0) {
      return header;
    }
    Header known = flagged.get(flags);
    if (known == null) {
      known = Header.of(flags, kid, scope);
      flagged.set(flags, known);
    }
    return known;
  }

  /**
   * Gives the key to the cipher.
   *
   * @return the key, which may be wiped at any moment
   */
  public Secret secret() {
    return secret;
  }

  /**
   * Gives this thread's running session, beginning the first one.
   *
   * @param now time of the lease clock, in nanoseconds
   * @return the session, which may be over
   * @throws IllegalStateException if the key was wiped
   */
  public EncryptingSession session(long now) {
    Sessions known = sessions;
    return (known != null ? known : newSessions()).session(now);
  }

  private synchronized Sessions newSessions() {
    if (sessions == null) {
      sessions = new Sessions(kid, secret);
    }
    return sessions;
  }

  /**
   * Begins the next session, unless another thread did.
   *
   * @param ended the session that is over
   * @param now time of the lease clock, in nanoseconds
   * @return the session that runs
   * @throws IllegalStateException if the key was wiped
   */
  public EncryptingSession sessionAfter(EncryptingSession ended, long now) {
    return sessions.after(ended, now);
  }

  /**
   * Takes what is to be reported.
   *
   * @return empty if nothing was encrypted since the last time
   */
  Optional<Usage> takeUsage() {
    return Optional.ofNullable(sessions).flatMap(Sessions::takeUsage);
  }

  /** Puts back what could not be reported. */
  void giveBack(Usage usage) {
    sessions.giveBack(usage);
  }

  /** Wipes the key and what was derived from it for encrypting. May be called more than once. */
  public void destroy() {
    secret.destroy();
    Sessions known = sessions;
    if (known != null) {
      known.end();
    }
  }

  /** Names the key id and the scope, which are no secrets. */
  @Override
  public String toString() {
    return "DataKey[kid=" + kid + ", scope=" + scope + "]";
  }
}
