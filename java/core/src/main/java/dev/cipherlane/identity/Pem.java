package dev.cipherlane.identity;

import java.io.ByteArrayInputStream;
import java.security.GeneralSecurityException;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/** Certificates in PEM. */
final class Pem {
  private static final String BEGIN = "-----BEGIN CERTIFICATE-----";
  private static final String END = "-----END CERTIFICATE-----";

  private Pem() {}

  /** All of a text that holds nothing else, in order: at least one. */
  static List<X509Certificate> onlyCertificates(String pem) throws GeneralSecurityException {
    List<X509Certificate> found = new ArrayList<>();
    for (String rest = pem.strip(); !rest.isEmpty(); ) {
      int end = rest.indexOf(END);
      if (!rest.startsWith(BEGIN) || end < 0) {
        throw new CertificateException("not PEM certificates only");
      }
      found.add(certificate(rest.substring(BEGIN.length(), end)));
      rest = rest.substring(end + END.length()).strip();
    }
    return found;
  }

  private static X509Certificate certificate(String base64) throws GeneralSecurityException {
    try {
      byte[] der = Base64.getDecoder().decode(base64.replaceAll("\\s", ""));
      return (X509Certificate)
          CertificateFactory.getInstance("X.509")
              .generateCertificate(new ByteArrayInputStream(der));
    } catch (IllegalArgumentException e) {
      throw new CertificateException("not base64", e);
    }
  }

  /** All of a text, in order; maybe none. */
  static List<X509Certificate> certificates(byte[] pem) throws GeneralSecurityException {
    return CertificateFactory.getInstance("X.509")
        .generateCertificates(new ByteArrayInputStream(pem))
        .stream()
        .map(X509Certificate.class::cast)
        .toList();
  }
}
