package dev.cipherlane.identity;

import java.security.cert.X509Certificate;
import java.util.Optional;
import java.util.Set;

/**
 * How a call for a certificate proves who asks: by a certificate, or by a token. A class and not a
 * record, so that nothing prints a token.
 */
public final class Proof {
  private final Credentials certificate;
  private final String token;
  private final Set<X509Certificate> trusted;

  private Proof(Credentials certificate, String token, Set<X509Certificate> trusted) {
    this.certificate = certificate;
    this.token = token;
    this.trusted = trusted;
  }

  static Proof certificate(Credentials certificate) {
    return new Proof(certificate, null, certificate.trust().keyService());
  }

  static Proof token(String token, Set<X509Certificate> trusted) {
    return new Proof(null, token, trusted);
  }

  /**
   * Gives the certificate.
   *
   * @return empty where a token proves it
   */
  public Optional<Credentials> certificate() {
    return Optional.ofNullable(certificate);
  }

  /**
   * Gives the JWT or bootstrap token.
   *
   * @return empty where a certificate proves it
   */
  public Optional<String> token() {
    return Optional.ofNullable(token);
  }

  /**
   * Tells which CAs the key service's certificate may chain to.
   *
   * @return at least one
   */
  public Set<X509Certificate> trusted() {
    return trusted;
  }
}
