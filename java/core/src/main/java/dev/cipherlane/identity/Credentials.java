package dev.cipherlane.identity;

import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.util.List;
import java.util.Set;

/**
 * A certificate with its private key, and whom to trust. A class and not a record, so that nothing
 * prints the key. Immutable.
 */
public final class Credentials {
  private final List<X509Certificate> chain;
  private final PrivateKey key;
  private final Trust trust;
  private final long endsAt;

  /**
   * Whom to trust.
   *
   * @param keyService CAs that the key service's certificate may chain to
   * @param peers CAs that the certificate of a Kafka peer may chain to
   */
  public record Trust(Set<X509Certificate> keyService, Set<X509Certificate> peers) {}

  /**
   * Makes them.
   *
   * @param chain from the leaf up, not empty
   * @param key that of the leaf
   * @param trust whom to trust with it
   * @param endsAt when the leaf ends, in nanoseconds of the lease clock
   */
  Credentials(List<X509Certificate> chain, PrivateKey key, Trust trust, long endsAt) {
    this.chain = List.copyOf(chain);
    this.key = key;
    this.trust = trust;
    this.endsAt = endsAt;
  }

  /**
   * Gives the certificates.
   *
   * @return from the leaf up; at least one
   */
  public List<X509Certificate> chain() {
    return chain;
  }

  /**
   * Gives the leaf.
   *
   * @return the first of the chain
   */
  public X509Certificate leaf() {
    return chain.get(0);
  }

  /**
   * Gives the private key. It must not be written anywhere [CL-IDN-030].
   *
   * @return the key of the leaf
   */
  public PrivateKey key() {
    return key;
  }

  /**
   * Tells whom to trust.
   *
   * @return CAs
   */
  public Trust trust() {
    return trust;
  }

  /**
   * Tells when the leaf ends.
   *
   * @return nanoseconds of the lease clock
   */
  public long endsAt() {
    return endsAt;
  }

  /** Names the leaf only. */
  @Override
  public String toString() {
    return "Credentials[" + leaf().getSubjectX500Principal() + "]";
  }
}
