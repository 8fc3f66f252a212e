package dev.cipherlane.identity;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.identity.CertificateSource.Issued;
import java.security.GeneralSecurityException;
import java.security.PublicKey;
import java.security.cert.CertPathValidator;
import java.security.cert.CertificateFactory;
import java.security.cert.PKIXParameters;
import java.security.cert.TrustAnchor;
import java.security.cert.X509Certificate;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/** Checks what the key service answered before it is used [CL-IDN-033]. */
final class AnswerCheck {
  static final int MAX_CHARACTERS = 64 * 1024;
  static final int MAX_CERTIFICATES = 16;
  private static final String CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";

  /** An answer that may be used. */
  record Checked(List<X509Certificate> chain, Set<X509Certificate> cas, String principal) {}

  private AnswerCheck() {}

  /**
   * Checks.
   *
   * @param issued the answer
   * @param key the one that was made for it
   * @param principal of the certificate before; empty if there was none
   * @throws CipherlaneException {@code key-service-bad-answer}
   */
  static Checked check(Issued issued, PublicKey key, Optional<String> principal) {
    List<X509Certificate> chain = parse("certificate", issued.certificate());
    Set<X509Certificate> cas = new LinkedHashSet<>(parse("ca", issued.ca()));
    X509Certificate leaf = chain.get(0);
    if (!leaf.getPublicKey().equals(key)) {
      throw bad("the certificate is for another key");
    }
    String name =
        PrincipalName.of(leaf).orElseThrow(() -> bad("the certificate names no principal"));
    if (principal.isPresent() && !principal.get().equals(name)) {
      throw bad("the certificate names another principal");
    }
    checkChain(chain, cas);
    checkUse(leaf);
    return new Checked(chain, cas, name);
  }

  private static List<X509Certificate> parse(String member, String pem) {
    if (pem.length() > MAX_CHARACTERS) {
      throw bad("member " + member + " is longer than " + MAX_CHARACTERS + " characters");
    }
    List<X509Certificate> found;
    try {
      found = Pem.onlyCertificates(pem);
    } catch (GeneralSecurityException e) {
      throw bad("member " + member + " is not PEM certificates");
    }
    if (found.isEmpty() || found.size() > MAX_CERTIFICATES) {
      throw bad("member " + member + " has not 1 to " + MAX_CERTIFICATES + " certificates");
    }
    return found;
  }

  /** Also that all of the chain holds now. */
  private static void checkChain(List<X509Certificate> chain, Set<X509Certificate> cas) {
    try {
      var anchors = cas.stream().map(ca -> new TrustAnchor(ca, null)).collect(Collectors.toSet());
      PKIXParameters parameters = new PKIXParameters(anchors);
      parameters.setRevocationEnabled(false); // short-lived ones are not revoked
      CertPathValidator.getInstance("PKIX")
          .validate(CertificateFactory.getInstance("X.509").generateCertPath(chain), parameters);
    } catch (GeneralSecurityException e) {
      throw new CipherlaneException(
          ErrorCode.KEY_SERVICE_BAD_ANSWER,
          "the certificate does not hold now, or does not chain to a CA of the same answer"
              + " (is this machine's clock right?): "
              + e.getMessage(),
          e);
    }
  }

  private static void checkUse(X509Certificate leaf) {
    try {
      List<String> uses = leaf.getExtendedKeyUsage();
      if (leaf.getBasicConstraints() >= 0 || uses == null || !uses.contains(CLIENT_AUTH)) {
        throw bad("the certificate is not for TLS clients");
      }
    } catch (GeneralSecurityException e) {
      throw bad("the certificate's extensions cannot be read");
    }
  }

  private static CipherlaneException bad(String why) {
    return new CipherlaneException(ErrorCode.KEY_SERVICE_BAD_ANSWER, why);
  }
}
