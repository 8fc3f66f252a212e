package dev.cipherlane.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.identity.CertificateSource.Issued;
import dev.cipherlane.keys.Term;
import java.security.KeyPair;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.Collections;
import java.util.Map;
import java.util.Optional;
import org.bouncycastle.asn1.x500.X500Name;
import org.bouncycastle.asn1.x509.KeyPurposeId;
import org.junit.jupiter.api.Test;

/** What may not be used. CL-IDN-033 */
class AnswerCheckTest {
  private static final String ALICE = "spiffe://example.org/alice";
  private static final Duration AGO = Duration.ofMinutes(-5);
  private static final Duration HOUR = Duration.ofHours(1);

  private final TestAuthority ca = new TestAuthority();
  private final KeyPair keys = TestAuthority.keyPair();
  private final X509Certificate good = ca.client(keys.getPublic(), ALICE, AGO, HOUR);

  private AnswerCheck.Checked check(String certificate, String cas, String principal) {
    Issued issued = new Issued(certificate, cas, new Term(1, 2));
    return AnswerCheck.check(issued, keys.getPublic(), Optional.ofNullable(principal));
  }

  private static String pem(Object... all) {
    return TestAuthority.pem(all);
  }

  @Test
  void goodAnswersAreTaken() {
    TestAuthority next = new TestAuthority();
    for (String principal : new String[] {null, ALICE}) {
      AnswerCheck.Checked checked =
          check(pem(good), pem(next.certificate, ca.certificate), principal);
      assertThat(checked.principal()).isEqualTo(ALICE);
      assertThat(checked.chain()).containsExactly(good);
      assertThat(checked.cas()).containsExactly(next.certificate, ca.certificate);
    }
  }

  @Test
  void wrongCertificatesAreRefused() {
    var key = keys.getPublic();
    X500Name name = new X500Name("CN=x");
    KeyPurposeId client = KeyPurposeId.id_kp_clientAuth;
    Map<String, X509Certificate> wrong =
        Map.ofEntries(
            Map.entry(
                "for another key",
                ca.client(TestAuthority.keyPair().getPublic(), ALICE, AGO, HOUR)),
            Map.entry("another principal", ca.client(key, "spiffe://example.org/bob", AGO, HOUR)),
            Map.entry("names another", ca.sign(name, key, "", AGO, HOUR, false, client)),
            Map.entry("no principal", ca.client(key, "spiffe://EXAMPLE.org/alice", AGO, HOUR)),
            Map.entry("does not hold now", ca.client(key, ALICE, AGO, Duration.ofSeconds(-1))),
            Map.entry("hold now", ca.client(key, ALICE, Duration.ofMinutes(5), HOUR)),
            Map.entry("does not chain", new TestAuthority().client(key, ALICE, AGO, HOUR)),
            Map.entry("not for TLS", ca.sign(name, key, ALICE, AGO, HOUR, true, client)),
            Map.entry(
                "not for TLS clients",
                ca.sign(name, key, ALICE, AGO, HOUR, false, KeyPurposeId.id_kp_serverAuth)),
            Map.entry("for TLS clients", ca.sign(name, key, ALICE, AGO, HOUR, false, null)));
    wrong.forEach(
        (why, certificate) ->
            assertThatThrownBy(() -> check(pem(certificate), pem(ca.certificate), ALICE))
                .as(why)
                .hasMessageContaining("key-service-bad-answer")
                .hasMessageContaining(why));
  }

  @Test
  void whatIsNoCertificateIsRefused() {
    String some = pem(good);
    String cas = pem(ca.certificate);
    String[] wrong = {
      "",
      "garbage",
      "-----BEGIN CERTIFICATE-----\n",
      some.substring(0, some.length() / 2),
      some.replace("CERTIFICATE", "PUBLIC KEY"),
      some.replaceFirst("\nM", "\n!"),
      pem(Collections.nCopies(AnswerCheck.MAX_CERTIFICATES + 1, good).toArray()),
      some + " ".repeat(AnswerCheck.MAX_CHARACTERS)
    };
    for (String text : wrong) {
      assertThatThrownBy(() -> check(text, cas, ALICE)).hasMessageContaining("bad-answer");
      assertThatThrownBy(() -> check(some, text, ALICE)).hasMessageContaining("bad-answer");
    }
  }

  @Test
  void bigAnswersAreTakenUpToTheLimit() {
    String cas = pem(Collections.nCopies(AnswerCheck.MAX_CERTIFICATES, ca.certificate).toArray());
    assertThat(check(pem(good), cas, ALICE).cas()).containsExactly(ca.certificate);
  }

  @Test
  void aCertificateOfAnotherCaOfTheAnswerIsNotEnough() {
    TestAuthority other = new TestAuthority();
    assertThatThrownBy(() -> check(pem(good), pem(other.certificate), ALICE))
        .hasMessageContaining("does not chain");
  }
}
