package dev.cipherlane.identity;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.keys.Term;

/** Gives certificates: {@code POST /v1/certificate}. Thread-safe. */
public interface CertificateSource {
  /**
   * What was answered, not checked yet.
   *
   * @param certificate PEM, the chain from the leaf up
   * @param ca PEM, all CAs to trust now
   * @param term when to renew, and when the certificate ends
   */
  record Issued(String certificate, String ca, Term term) {}

  /**
   * Asks for a certificate.
   *
   * @param csr PEM, a request (PKCS #10)
   * @param proof who asks
   * @return the answer
   * @throws CipherlaneException a refusal, or that there was no answer
   */
  Issued certificate(String csr, Proof proof);
}
