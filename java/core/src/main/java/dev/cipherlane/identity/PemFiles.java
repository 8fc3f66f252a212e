package dev.cipherlane.identity;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.keys.LeaseClock;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.cert.X509Certificate;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Reads certificates and keys from PEM files. */
final class PemFiles {
  private static final Pattern PRIVATE_KEY =
      Pattern.compile("-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\\s]+)-----END PRIVATE KEY-----");
  private static final Map<String, String> SIGNATURES =
      Map.of("EC", "SHA256withECDSA", "RSA", "SHA256withRSA", "EdDSA", "EdDSA");

  private PemFiles() {}

  /**
   * Reads all.
   *
   * @throws CipherlaneException {@code configuration-invalid} if one cannot be used
   */
  static Credentials credentials(TlsFiles files, LeaseClock clock) {
    try {
      Set<X509Certificate> cas = cas(files.ca());
      List<X509Certificate> chain = certificates("certificate", files.certificate());
      PrivateKey key = privateKey(files.key());
      checkPair(key, chain.get(0).getPublicKey());
      return new Credentials(chain, key, new Credentials.Trust(cas, cas), end(chain, clock));
    } catch (GeneralSecurityException e) {
      throw new CipherlaneException(
          ErrorCode.CONFIGURATION_INVALID,
          "the settings cipherlane.keyservice.tls.* do not fit",
          e);
    }
  }

  private static long end(List<X509Certificate> chain, LeaseClock clock) {
    Instant end = chain.get(0).getNotAfter().toInstant();
    return clock.now() + Duration.between(Instant.now(), end).toMillis() * 1_000_000;
  }

  static Set<X509Certificate> cas(Path file) {
    return new LinkedHashSet<>(certificates("ca", file));
  }

  /** The key store would take any two, and every handshake fail. */
  private static void checkPair(PrivateKey key, PublicKey certified)
      throws GeneralSecurityException {
    String algorithm = SIGNATURES.get(key.getAlgorithm());
    byte[] message = algorithm.getBytes(StandardCharsets.US_ASCII);
    Signature signer = Signature.getInstance(algorithm);
    signer.initSign(key);
    signer.update(message);
    byte[] signature = signer.sign();
    try {
      signer.initVerify(certified);
      signer.update(message);
      if (signer.verify(signature)) {
        return;
      }
    } catch (InvalidKeyException | SignatureException e) {
      // A key of another algorithm or size, then.
    }
    throw invalid("key", "does not belong to the certificate", null);
  }

  private static List<X509Certificate> certificates(String setting, Path file) {
    try {
      List<X509Certificate> found = Pem.certificates(Files.readAllBytes(file));
      if (found.isEmpty()) {
        throw invalid(setting, "holds no certificate", null);
      }
      return found;
    } catch (IOException | GeneralSecurityException e) {
      throw invalid(setting, "cannot be read as PEM certificates", e);
    }
  }

  private static PrivateKey privateKey(Path file) {
    byte[] pem = null;
    byte[] der = null;
    try {
      pem = Files.readAllBytes(file);
      Matcher found = PRIVATE_KEY.matcher(new String(pem, StandardCharsets.ISO_8859_1));
      if (!found.find()) {
        throw invalid("key", "holds no unencrypted PKCS #8 private key (BEGIN PRIVATE KEY)", null);
      }
      der = Base64.getMimeDecoder().decode(found.group(1));
      return privateKey(der);
    } catch (IOException e) {
      throw invalid("key", "cannot be read", e);
    } finally {
      wipe(pem);
      wipe(der);
    }
  }

  private static PrivateKey privateKey(byte[] der) {
    for (String algorithm : SIGNATURES.keySet()) {
      try {
        return KeyFactory.getInstance(algorithm).generatePrivate(new PKCS8EncodedKeySpec(der));
      } catch (InvalidKeySpecException e) {
        // Another algorithm, then.
      } catch (GeneralSecurityException e) {
        throw new IllegalStateException("this Java runtime has no " + algorithm, e);
      }
    }
    throw invalid("key", "is a key of none of " + SIGNATURES.keySet(), null);
  }

  private static void wipe(byte[] bytes) {
    if (bytes != null) {
      Arrays.fill(bytes, (byte) 0);
    }
  }

  private static CipherlaneException invalid(String setting, String why, Exception cause) {
    return new CipherlaneException(
        ErrorCode.CONFIGURATION_INVALID,
        "the file of cipherlane.keyservice.tls." + setting + " " + why,
        cause);
  }
}
