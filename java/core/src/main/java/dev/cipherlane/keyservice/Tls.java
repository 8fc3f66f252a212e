package dev.cipherlane.keyservice;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.InvalidKeyException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.InvalidKeySpecException;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collection;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;

/** Mutual TLS from PEM files: trusts the CA given and nothing else [CL-KEY-001]. */
final class Tls {
  private static final Pattern PRIVATE_KEY =
      Pattern.compile("-----BEGIN PRIVATE KEY-----([A-Za-z0-9+/=\\s]+)-----END PRIVATE KEY-----");
  private static final Map<String, String> SIGNATURES =
      Map.of("EC", "SHA256withECDSA", "RSA", "SHA256withRSA", "EdDSA", "EdDSA");

  private Tls() {}

  static SSLContext context(TlsFiles files) {
    try {
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(identity(files).getKeyManagers(), trust(files.ca()).getTrustManagers(), null);
      return context;
    } catch (GeneralSecurityException | IOException e) {
      throw new CipherlaneException(
          ErrorCode.CONFIGURATION_INVALID,
          "the settings cipherlane.keyservice.tls.* do not fit",
          e);
    }
  }

  /** Also says that the server's name is checked, which a system property could switch off. */
  static SSLParameters parameters() {
    SSLParameters parameters = new SSLParameters();
    parameters.setProtocols(new String[] {"TLSv1.3", "TLSv1.2"});
    parameters.setEndpointIdentificationAlgorithm("HTTPS");
    return parameters;
  }

  private static TrustManagerFactory trust(Path ca) throws GeneralSecurityException, IOException {
    KeyStore store = emptyStore();
    int number = 0;
    for (Certificate certificate : certificates("ca", ca)) {
      store.setCertificateEntry("ca-" + number++, certificate);
    }
    TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
    trust.init(store);
    return trust;
  }

  private static KeyManagerFactory identity(TlsFiles files)
      throws GeneralSecurityException, IOException {
    KeyStore store = emptyStore();
    Certificate[] chain =
        certificates("certificate", files.certificate()).toArray(Certificate[]::new);
    PrivateKey key = privateKey(files.key());
    checkPair(key, chain[0].getPublicKey());
    // The store never leaves memory, so its password protects nothing.
    char[] password = new char[0];
    store.setKeyEntry("client", key, password, chain);
    KeyManagerFactory identity = KeyManagerFactory.getInstance("PKIX");
    identity.init(store, password);
    return identity;
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

  private static KeyStore emptyStore() throws GeneralSecurityException, IOException {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    return store;
  }

  private static Collection<? extends Certificate> certificates(String setting, Path file) {
    try {
      var found =
          CertificateFactory.getInstance("X.509")
              .generateCertificates(new ByteArrayInputStream(Files.readAllBytes(file)));
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
