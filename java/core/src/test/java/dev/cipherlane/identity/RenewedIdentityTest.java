package dev.cipherlane.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keys.Term;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.bouncycastle.openssl.PEMParser;
import org.bouncycastle.pkcs.jcajce.JcaPKCS10CertificationRequest;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** When it asks, what it keeps, and when it ends, with a key service that does what a test says. */
class RenewedIdentityTest {
  private static final String ALICE = "spiffe://example.org/alice";
  private static final LeaseClock CLOCK = LeaseClock.system();

  /** Answers the n-th call; from 0. */
  private interface Script {
    CertificateSource.Issued answer(int call, String csr) throws Exception;
  }

  @TempDir Path folder;

  private final TestAuthority ca = new TestAuthority();
  private final AtomicInteger calls = new AtomicInteger();
  private final List<Proof> proofs = Collections.synchronizedList(new ArrayList<>());
  private final List<Long> times = Collections.synchronizedList(new ArrayList<>());
  private Path caFile;
  private Path token;
  private RenewedIdentity identity;

  @BeforeEach
  void files() throws IOException {
    caFile = Files.writeString(folder.resolve("ca.pem"), TestAuthority.pem(ca.certificate));
    token = Files.writeString(folder.resolve("token"), "clbt_first\n");
  }

  @AfterEach
  void close() {
    if (identity != null) {
      identity.close();
    }
  }

  private RenewedIdentity start(IdentitySettings.FirstProof first, Script script) {
    CertificateSource source =
        (csr, proof) -> {
          times.add(System.nanoTime());
          proofs.add(proof);
          try {
            return script.answer(calls.getAndIncrement(), csr);
          } catch (CipherlaneException e) {
            throw e;
          } catch (Exception e) {
            throw new IllegalStateException(e);
          }
        };
    identity =
        new RenewedIdentity(
            new IdentitySettings(caFile, first, true, List.of()),
            source,
            new RenewedIdentity.Timing(Duration.ofMillis(50), Duration.ofSeconds(10), CLOCK));
    return identity;
  }

  private IdentitySettings.Token byToken() {
    return new IdentitySettings.Token(token);
  }

  private CertificateSource.Issued issue(String csr, int refresh, int expires) throws Exception {
    try (PEMParser parser = new PEMParser(new StringReader(csr))) {
      var request =
          new JcaPKCS10CertificationRequest(
              (org.bouncycastle.pkcs.PKCS10CertificationRequest) parser.readObject());
      var leaf =
          ca.client(
              request.getPublicKey(), ALICE, Duration.ofMinutes(-5), Duration.ofSeconds(expires));
      return new CertificateSource.Issued(
          TestAuthority.pem(leaf),
          TestAuthority.pem(ca.certificate),
          Term.of(CLOCK.now(), refresh, expires));
    }
  }

  private static CipherlaneException down() {
    return new CipherlaneException(ErrorCode.KEY_SERVICE_UNAVAILABLE, "no answer");
  }

  private static void until(java.util.function.BooleanSupplier true_) throws Exception {
    for (int i = 0; i < 400 && !true_.getAsBoolean(); i++) {
      Thread.sleep(25);
    }
    assertThat(true_.getAsBoolean()).isTrue();
  }

  @Test
  void asksAgainInTimeWithWhatItHas() throws Exception { // CL-IDN-031 CL-IDN-035 CL-IDN-030
    start(byToken(), (call, csr) -> issue(csr, 1, 5));
    Credentials first = identity.credentials();
    until(() -> calls.get() == 3);
    assertThat(identity.credentials()).isNotSameAs(first);
    assertThat(identity.credentials().leaf().getPublicKey())
        .isNotEqualTo(first.leaf().getPublicKey());
    for (int i = 1; i < 3; i++) {
      long apart = times.get(i) - times.get(i - 1);
      assertThat(apart).isBetween(880_000_000L, 2_500_000_000L);
    }
    assertThat(proofs.get(0).token()).contains("clbt_first");
    assertThat(proofs.get(1).token()).isEmpty();
    assertThat(proofs.get(1).certificate().orElseThrow().leaf()).isEqualTo(first.leaf());
    assertThat(identity.secondsLeft()).isBetween(2.0, 5.0);
    assertThat(first.toString() + proofs).doesNotContain("clbt_").doesNotContain("rivate");
  }

  @Test
  void failuresLeaveTheOldOneInUse() throws Exception { // CL-IDN-032
    start(
        byToken(),
        (call, csr) -> {
          if (call == 0) {
            return issue(csr, 1, 60);
          }
          throw call % 2 == 0 ? down() : new IllegalStateException("anything");
        });
    Credentials first = identity.credentials();
    until(() -> calls.get() >= 5);
    assertThat(identity.credentials()).isSameAs(first);
    long last = times.get(4) - times.get(3);
    assertThat(last).isGreaterThan(100_000_000L).isGreaterThan(times.get(3) - times.get(2));
  }

  @Test
  void wrongAnswersLeaveTheOldOneInUse() throws Exception { // CL-IDN-033
    TestAuthority foreign = new TestAuthority();
    start(
        byToken(),
        (call, csr) -> {
          var good = issue(csr, 1, 60);
          return switch (call) {
            case 0 -> good;
            case 1 -> new CertificateSource.Issued("garbage", good.ca(), good.term());
            case 2 ->
                new CertificateSource.Issued(
                    good.certificate(), TestAuthority.pem(foreign.certificate), good.term());
            default -> issue(csr, 60, 60);
          };
        });
    Credentials first = identity.credentials();
    until(() -> calls.get() >= 3);
    assertThat(identity.credentials()).isSameAs(first);
    until(() -> identity.credentials() != first);
    assertThat(calls.get()).isEqualTo(4);
  }

  @Test
  void afterTheEndNothingIsUsedAndTheErrorSaysWhatToDo() throws Exception { // CL-IDN-036
    start(
        byToken(),
        (call, csr) -> {
          if (call == 0 || proofs.get(call).token().filter("clbt_second"::equals).isPresent()) {
            return issue(csr, 1, 2);
          }
          throw down();
        });
    identity.credentials();
    until(() -> identity.secondsLeft() < 0);
    assertThatThrownBy(() -> identity.credentials())
        .hasMessageContaining("key-service-unavailable")
        .hasMessageContaining("the last certificate has ended")
        .hasMessageContaining("cipherlane.identity.token.file");
    int before = calls.get();
    Thread.sleep(600);
    assertThat(calls.get()).as("a spent token is not sent again").isLessThanOrEqualTo(before + 1);
    Files.writeString(token, "clbt_second");
    until(() -> identity.secondsLeft() > 0);
    assertThat(identity.credentials()).isNotNull();
  }

  @Test
  void refusedTokensAreNotSentAgain() throws Exception { // CL-IDN-035
    start(
        byToken(),
        (call, csr) -> {
          throw call == 0
              ? down()
              : new CipherlaneException(ErrorCode.UNAUTHENTICATED, "no such token");
        });
    assertThatThrownBy(() -> identity.credentials())
        .hasMessageContaining("there is no certificate yet");
    until(() -> calls.get() == 2);
    Thread.sleep(700);
    assertThat(calls.get()).isEqualTo(2);
    assertThatThrownBy(() -> identity.credentials())
        .hasMessageContaining("the bootstrap token was used or refused before");
  }

  @Test
  void jwtsAreReadAnew() throws Exception { // CL-IDN-035 CL-IDN-036
    Path jwt = Files.writeString(folder.resolve("jwt"), "a.b.1");
    start(new IdentitySettings.Jwt(jwt), (call, csr) -> issue(csr, 1, 60));
    identity.credentials();
    Files.writeString(jwt, "a.b.2\n");
    until(() -> calls.get() == 2);
    assertThat(proofs.get(0).token()).contains("a.b.1");
    assertThat(proofs.get(1).token()).contains("a.b.2");
    for (String bad : new String[] {"", "a b", "a\r\nX: y", "a".repeat(9000)}) {
      Files.writeString(jwt, bad);
      int before = calls.get();
      Thread.sleep(1300);
      assertThat(calls.get()).as(bad).isLessThanOrEqualTo(before + 1);
    }
    assertThat(proofs).allSatisfy(proof -> assertThat(proof.certificate()).isEmpty());
  }

  @Test
  void waitsForTheFirst() throws Exception {
    start(
        byToken(),
        (call, csr) -> {
          Thread.sleep(300);
          return issue(csr, 60, 60);
        });
    assertThat(identity.secondsLeft()).isNaN();
    assertThat(identity.credentials().chain()).hasSize(1);
    identity.close();
    identity.close();
  }

  @Test
  void closedWhileWaiting() {
    start(
        byToken(),
        (call, csr) -> {
          identity.close();
          throw down();
        });
    assertThatThrownBy(() -> identity.credentials()).isInstanceOf(CipherlaneException.class);
  }

  @Test
  void withoutItsCaFileItIsNotMade() throws IOException { // CL-CFG-002
    Files.writeString(caFile, "garbage");
    assertThatThrownBy(() -> start(byToken(), (call, csr) -> issue(csr, 1, 1)))
        .hasMessageContaining("cipherlane.keyservice.tls.ca");
  }
}
