package dev.cipherlane.identity;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.StringReader;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.spec.ECGenParameterSpec;
import java.util.Arrays;
import java.util.List;
import org.bouncycastle.asn1.DEROctetString;
import org.bouncycastle.asn1.x509.Extension;
import org.bouncycastle.asn1.x509.GeneralName;
import org.bouncycastle.asn1.x509.GeneralNames;
import org.bouncycastle.openssl.PEMParser;
import org.bouncycastle.operator.jcajce.JcaContentVerifierProviderBuilder;
import org.bouncycastle.pkcs.PKCS10CertificationRequest;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

/** Requests as another library reads them. */
class CsrTest {
  private static KeyPair keys() throws Exception {
    KeyPairGenerator generator = KeyPairGenerator.getInstance("EC");
    generator.initialize(new ECGenParameterSpec("secp256r1"));
    return generator.generateKeyPair();
  }

  private static PKCS10CertificationRequest parse(String pem) throws Exception {
    try (PEMParser parser = new PEMParser(new StringReader(pem))) {
      return (PKCS10CertificationRequest) parser.readObject();
    }
  }

  private static GeneralNames names(PKCS10CertificationRequest request) {
    return GeneralNames.fromExtensions(
        request.getRequestedExtensions(), Extension.subjectAlternativeName);
  }

  @RepeatedTest(20)
  void isSignedByItsKey() throws Exception { // signatures differ in length
    KeyPair keys = keys();
    PKCS10CertificationRequest request = parse(Csr.pem(keys, List.of()));
    var verifier = new JcaContentVerifierProviderBuilder().build(keys.getPublic());
    assertThat(request.isSignatureValid(verifier)).isTrue();
    assertThat(request.getSubjectPublicKeyInfo().getEncoded())
        .isEqualTo(keys.getPublic().getEncoded());
    assertThat(request.getSubject().getRDNs()).isEmpty();
    assertThat(request.getAttributes()).isEmpty();
  }

  @Test
  void namesServers() throws Exception { // CL-IDN-026
    KeyPair keys = keys();
    PKCS10CertificationRequest request =
        parse(Csr.pem(keys, List.of("broker-1.example.org", "127.0.0.1", "::1")));
    var verifier = new JcaContentVerifierProviderBuilder().build(keys.getPublic());
    assertThat(request.isSignatureValid(verifier)).isTrue();
    assertThat(names(request).getNames())
        .containsExactly(
            new GeneralName(GeneralName.dNSName, "broker-1.example.org"),
            new GeneralName(GeneralName.iPAddress, new DEROctetString(new byte[] {127, 0, 0, 1})),
            new GeneralName(GeneralName.iPAddress, "::1"));
  }

  /** Lengths of one, two and three bytes. */
  @Test
  void mayBeLong() throws Exception {
    for (int count = 1; count <= ServerNames.MAX; count++) {
      for (int length : new int[] {1, 60, 63}) {
        String label = "a".repeat(length);
        String[] all = new String[count];
        Arrays.fill(all, String.join(".", label, label, label, "b".repeat(Math.min(61, length))));
        assertThat(ServerNames.valid(List.of(all))).isTrue();
        GeneralNames names = names(parse(Csr.pem(keys(), List.of(all))));
        assertThat(names.getNames()).hasSize(count);
        assertThat(names.getNames()[count - 1].getName()).hasToString(all[0]);
      }
    }
  }
}
