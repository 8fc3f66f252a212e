package dev.cipherlane.identity;

import java.io.IOException;
import java.io.StringWriter;
import java.math.BigInteger;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.PublicKey;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.security.spec.ECGenParameterSpec;
import java.time.Duration;
import java.time.Instant;
import java.util.Date;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.BasicConstraints;
import org.bouncycastle.asn1.x509.ExtendedKeyUsage;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.asn1.x509.KeyPurposeId;
import org.bouncycastle.cert.jcajce.JcaX509CertificateConverter;
import org.bouncycastle.cert.jcajce.JcaX509v3CertificateBuilder;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;
import org.bouncycastle.operator.OperatorCreationException;
import org.bouncycastle.operator.jcajce.JcaContentSignerBuilder;

/** A CA that signs what a test wants, good and bad. */
final class TestAuthority {
  private final X500Name name = new X500Name("CN=CA " + new SecureRandom().nextInt());
  private final KeyPair keys = keyPair();
  final X509Certificate certificate =
      sign(name, keys.getPublic(), "", Duration.ofDays(-1), Duration.ofDays(1), true, null);

  /** A client's certificate. */
  X509Certificate client(PublicKey key, String spiffeId, Duration from, Duration to) {
    return sign(
        new X500Name("CN=x"), key, spiffeId, from, to, false, KeyPurposeId.id_kp_clientAuth);
  }

  X509Certificate sign(
      X500Name subject,
      PublicKey key,
      String spiffeId,
      Duration from,
      Duration to,
      boolean ca,
      KeyPurposeId use) {
    try {
      Instant now = Instant.now();
      var builder =
          new JcaX509v3CertificateBuilder(
              name,
              new BigInteger(120, new SecureRandom()),
              Date.from(now.plus(from)),
              Date.from(now.plus(to)),
              subject,
              key);
      builder.addExtension(Extension.basicConstraints, true, new BasicConstraints(ca));
      if (!spiffeId.isEmpty()) {
        builder.addExtension(
            Extension.subjectAlternativeName,
            false,
            new GeneralNames(new GeneralName(GeneralName.uniformResourceIdentifier, spiffeId)));
      }
      if (use != null) {
        builder.addExtension(Extension.extendedKeyUsage, false, new ExtendedKeyUsage(use));
      }
      var signer = new JcaContentSignerBuilder("SHA256withECDSA").build(keys.getPrivate());
      return new JcaX509CertificateConverter().getCertificate(builder.build(signer));
    } catch (IOException | GeneralSecurityException | OperatorCreationException e) {
      throw new IllegalStateException(e);
    }
  }

  static KeyPair keyPair() {
    try {
      KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
      generator.initialize(new ECGenParameterSpec("secp256r1"));
      return generator.generateKeyPair();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  static String pem(Object... all) {
    StringWriter text = new StringWriter();
    try (JcaPEMWriter writer = new JcaPEMWriter(text)) {
      for (Object one : all) {
        writer.writeObject(one);
      }
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
    return text.toString();
  }
}
