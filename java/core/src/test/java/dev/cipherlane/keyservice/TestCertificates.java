package dev.cipherlane.keyservice;

import dev.cipherlane.identity.TlsFiles;
import java.io.IOException;
import java.io.StringWriter;
import java.math.BigInteger;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.SecureRandom;
import java.security.cert.Certificate;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.BasicConstraints;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.cert.jcajce.JcaX509v3CertificateBuilder;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.openssl.jcajce.JcaPKCS8Generator;
import org.bouncycastle.operator.OperatorCreationException;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;

/** A certificate authority that lives as long as a test. */
public final class TestCertificates {
  /** A certificate with its key. */
  public record Identity(X509Certificate certificate, KeyPair keys) {}

  private static final Duration LIFE = Duration.ofHours(1);

  private final Identity ca;

  private TestCertificates(Identity ca) {
    this.ca = ca;
  }

  public static TestCertificates create() {
    KeyPair keys = keyPair("EC");
    X500Name name = new X500Name("CN=Test CA");
    return new TestCertificates(
        new Identity(
            sign(name, keys, name, keys, Instant.now().plus(LIFE), builder -> constrain(builder)),
            keys));
  }

  private static void constrain(JcaX509v3CertificateBuilder builder) throws IOException {
    builder.addExtension(Extension.basicConstraints, true, new BasicConstraints(true));
  }

  /** The authority's own certificate. */
  public X509Certificate authority() {
    return ca.certificate();
  }

  /** A server's certificate for one address. */
  public Identity server(String ip) {
    return server(ip, "EC");
  }

  /** The same with a key of algorithm EC or RSA. */
  public Identity server(String ip, String algorithm) {
    GeneralNames names = new GeneralNames(new GeneralName(GeneralName.iPAddress, ip));
    return issue(algorithm, "CN=server", names);
  }

  /** A client's certificate, with a key of algorithm EC, RSA or Ed25519. */
  public Identity client(String algorithm) {
    return issue(
        algorithm,
        "CN=client",
        new GeneralNames(
            new GeneralName(GeneralName.uniformResourceIdentifier, "spiffe://test/client")));
  }

  /** A client's certificate that has ended a minute ago. */
  public Identity expiredClient() {
    return issue(
        "EC",
        "CN=client",
        new GeneralNames(
            new GeneralName(GeneralName.uniformResourceIdentifier, "spiffe://test/client")),
        Instant.now().minusSeconds(60));
  }

  private Identity issue(String algorithm, String name, GeneralNames names) {
    return issue(algorithm, name, names, Instant.now().plus(LIFE));
  }

  private Identity issue(String algorithm, String name, GeneralNames names, Instant end) {
    KeyPair keys = keyPair(algorithm);
    X500Name issuer = new X500Name("CN=Test CA");
    X509Certificate certificate =
        sign(
            issuer,
            ca.keys(),
            new X500Name(name),
            keys,
            end,
            builder -> builder.addExtension(Extension.subjectAlternativeName, false, names));
    return new Identity(certificate, keys);
  }

  private static KeyPair keyPair(String algorithm) {
    try {
      KeyPairGenerator generator = KeyPairGenerator.getInstance(algorithm);
      if (algorithm.equals("EC")) {
        generator.initialize(new ECGenParameterSpec("secp256r1"));
      }
      return generator.generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  private interface Extensions {
    void add(JcaX509v3CertificateBuilder builder) throws IOException;
  }

  private static X509Certificate sign(
      X500Name issuer,
      KeyPair signer,
      X500Name subject,
      KeyPair keys,
      Instant end,
      Extensions extensions) {
    try {
      var builder =
          new JcaX509v3CertificateBuilder(
              issuer,
              new BigInteger(120, new SecureRandom()),
              Date.from(end.minus(LIFE.multipliedBy(2))),
              Date.from(end),
              subject,
              keys.getPublic());
      extensions.add(builder);
      return new JcaX509CertificateConverter()
          .getCertificate(
              builder.build(
                  new JcaContentSignerBuilder("SHA256withECDSA").build(signer.getPrivate())));
    } catch (IOException | GeneralSecurityException | OperatorCreationException e) {
      throw new IllegalStateException(e);
    }
  }

  /** A server's TLS: shows its certificate, and wants one that this authority signed. */
  public SSLContext serverContext(Identity server) {
    try {
      KeyStore identity = store();
      identity.setKeyEntry(
          "server",
          server.keys().getPrivate(),
          new char[0],
          new Certificate[] {server.certificate(), ca.certificate()});
      KeyManagerFactory keys = KeyManagerFactory.getInstance("PKIX");
      keys.init(identity, new char[0]);
      KeyStore trusted = store();
      trusted.setCertificateEntry("ca", ca.certificate());
      TrustManagerFactory trust = TrustManagerFactory.getInstance("PKIX");
      trust.init(trusted);
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
      return context;
    } catch (GeneralSecurityException | IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private static KeyStore store() throws GeneralSecurityException, IOException {
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    return store;
  }

  /** Writes a client's files. */
  public TlsFiles files(Path folder, Identity client) {
    return new TlsFiles(
        pem(folder.resolve("ca.pem"), ca.certificate()),
        pem(folder.resolve("client.pem"), client.certificate()),
        pem(folder.resolve("client-key.pem"), pkcs8(client)));
  }

  private static Object pkcs8(Identity client) {
    try {
      return new JcaPKCS8Generator(client.keys().getPrivate(), null);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private static Path pem(Path file, Object content) {
    StringWriter text = new StringWriter();
    try (JcaPEMWriter writer = new JcaPEMWriter(text)) {
      writer.writeObject(content);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    try {
      return Files.writeString(file, text.toString());
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }
}
