package dev.cipherlane.transport;

import dev.cipherlane.identity.PrincipalName;
import dev.cipherlane.identity.SpiffePatterns;
import dev.cipherlane.transport.engine.EngineTrust;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.util.Optional;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.X509ExtendedTrustManager;

/**
 * Trusts peers whose certificate chains to a CA, names one principal, and carries one of the SPIFFE
 * ids wanted [CL-IDN-040]. What it refuses ends the handshake, so that Kafka sees a failed
 * authentication and not a broken connection. Thread-safe.
 */
final class PeerTrust extends EngineTrust {
  private final X509ExtendedTrustManager chains;
  private final SpiffePatterns wanted;

  /**
   * Makes one.
   *
   * @param chains checks chains, dates, uses, and the host's name where the engine says so
   * @param wanted SPIFFE ids of peers
   */
  PeerTrust(X509ExtendedTrustManager chains, SpiffePatterns wanted) {
    this.chains = chains;
    this.wanted = wanted;
  }

  private void checkName(X509Certificate[] chain) throws CertificateException {
    Optional<String> name = PrincipalName.of(chain[0]);
    if (name.isEmpty() && !wanted.any()) {
      throw new CertificateException("the peer's certificate has no SPIFFE id");
    }
    if (name.isPresent() && !wanted.matches(name.get())) {
      throw new CertificateException(
          "the peer is " + name.get() + ", which cipherlane.tls.peer.ids does not name");
    }
  }

  @Override
  public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine)
      throws CertificateException {
    chains.checkClientTrusted(chain, type, engine);
    if (PrincipalName.of(chain[0]).isEmpty()) {
      throw new CertificateException("the client's certificate names no principal");
    }
    checkName(chain);
  }

  @Override
  public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine)
      throws CertificateException {
    chains.checkServerTrusted(chain, type, engine);
    checkName(chain);
  }

  @Override
  public X509Certificate[] getAcceptedIssuers() {
    return chains.getAcceptedIssuers();
  }
}
