package dev.cipherlane.identity;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.Configuration;
import dev.cipherlane.Encryptor;
import dev.cipherlane.RecordKey;
import dev.cipherlane.SharedIdentity;
import dev.cipherlane.testing.KeyServiceProcess;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyPair;
import java.security.Signature;
import java.security.interfaces.ECPublicKey;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Certificates from the real key service, of ten seconds each. */
class WithKeyServiceTest {
  private static final String POLICY =
      """
      version: 1
      lease: {expires_in: 2s}
      topics: [{topics: ["*"], mode: encrypt}]
      grants:
        - {principals: ["spiffe://dev.cipherlane/**"], actions: [certificate], lifetime: 10s}
        - {principals: ["spiffe://dev.cipherlane/producer"], actions: [encrypt], topics: ["*"]}
        - {principals: ["spiffe://dev.cipherlane/operator"], actions: [admin]}
      """;
  private static final String SECTIONS =
      """
      certificates: {ca: embedded, bootstrap_tokens: true}
      jwt: {issuer: test, audience: cipherlane, principals: ["spiffe://dev.cipherlane/**"], jwks_file: jwks.json}
      """;
  private static final String PRODUCER = "spiffe://dev.cipherlane/producer";

  @TempDir Path folder;

  private final KeyPair issuer = TestAuthority.keyPair();
  private KeyServiceProcess service;

  @BeforeEach
  void start() throws IOException {
    Files.createDirectory(folder.resolve("dev"));
    Files.writeString(folder.resolve("dev/jwks.json"), jwks());
    service = KeyServiceProcess.start(folder, POLICY, SECTIONS);
  }

  @AfterEach
  void stop() throws IOException {
    service.close();
  }

  private static String base64(byte[] bytes) {
    return Base64.getUrlEncoder().withoutPadding().encodeToString(bytes);
  }

  private static byte[] coordinate(java.math.BigInteger number) {
    byte[] bytes = number.toByteArray();
    byte[] fixed = new byte[32];
    int length = Math.min(32, bytes.length);
    System.arraycopy(bytes, bytes.length - length, fixed, 32 - length, length);
    return fixed;
  }

  private String jwks() {
    var point = ((ECPublicKey) issuer.getPublic()).getW();
    return "{\"keys\":[{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"k\",\"alg\":\"ES256\",\"x\":\""
        + base64(coordinate(point.getAffineX()))
        + "\",\"y\":\""
        + base64(coordinate(point.getAffineY()))
        + "\"}]}";
  }

  private String jwt(String subject) throws Exception {
    String claims =
        "{\"iss\":\"test\",\"aud\":\"cipherlane\",\"sub\":\"%s\",\"exp\":%d}"
            .formatted(subject, Instant.now().plusSeconds(60).getEpochSecond());
    String signed =
        base64("{\"alg\":\"ES256\",\"kid\":\"k\"}".getBytes(StandardCharsets.UTF_8))
            + "."
            + base64(claims.getBytes(StandardCharsets.UTF_8));
    Signature signer = Signature.getInstance("SHA256withECDSAinP1363Format");
    signer.initSign(issuer.getPrivate());
    signer.update(signed.getBytes(StandardCharsets.US_ASCII));
    return signed + "." + base64(signer.sign());
  }

  /** Settings without a certificate, but for those given. */
  private Map<String, Object> settings(String... more) {
    Map<String, Object> settings = new HashMap<>(service.settings("producer"));
    settings.remove("cipherlane.keyservice.tls.certificate");
    settings.remove("cipherlane.keyservice.tls.key");
    for (int i = 0; i < more.length; i += 2) {
      settings.put(more[i], more[i + 1]);
    }
    return settings;
  }

  private String token() throws IOException {
    String json = service.operate("token", "create", PRODUCER, "--json");
    return com.google.gson.JsonParser.parseString(json)
        .getAsJsonObject()
        .get("token")
        .getAsString();
  }

  private Map<String, Object> byToken() throws IOException {
    Path file = Files.writeString(folder.resolve("token"), token());
    return settings("cipherlane.identity.token.file", file.toString());
  }

  private Map<String, Object> byFiles() {
    Map<String, Object> settings = new HashMap<>(service.settings("producer"));
    settings.put("cipherlane.identity.renew", "true");
    return settings;
  }

  private static void encrypt(Encryptor encryptor) {
    byte[] value = {1, 2, 3};
    assertThat(encryptor.encrypt("claims", RecordKey.UNKNOWN, value)).hasSizeGreaterThan(60);
  }

  private static void until(BooleanSupplier reached) throws InterruptedException {
    for (int i = 0; i < 800 && !reached.getAsBoolean(); i++) {
      Thread.sleep(25);
    }
    assertThat(reached.getAsBoolean()).isTrue();
  }

  private long issued() throws IOException {
    return Files.readAllLines(service.auditFile()).stream()
        .filter(line -> line.contains("\"certificate\"") && line.contains("\"serial\""))
        .count();
  }

  @Test
  void firstByTokenThenByItself() throws Exception { // CL-IDN-031 CL-IDN-035
    Map<String, Object> settings = byToken();
    try (Identity identity = SharedIdentity.of(Configuration.of(settings));
        Encryptor encryptor = new Encryptor(Configuration.of(settings))) {
      Credentials first = identity.credentials();
      assertThat(PrincipalName.of(first.leaf())).contains(PRODUCER);
      assertThat(encryptor.numbers().figures())
          .filteredOn(figure -> figure.name().equals("certificate-seconds-left"))
          .allSatisfy(figure -> assertThat(figure.value().getAsDouble()).isBetween(1.0, 10.0));
      for (int i = 0; i < 150 || identity.credentials() == first; i++) {
        encrypt(encryptor); // leases of two seconds: it asks with each certificate
        Thread.sleep(100);
        assertThat(i).isLessThan(400);
      }
      assertThat(issued()).isBetween(2L, 4L);
    }
  }

  @Test
  void firstByJwtOrByFiles() throws Exception {
    Path file = Files.writeString(folder.resolve("jwt"), jwt(PRODUCER));
    List<Map<String, Object>> all =
        List.of(settings("cipherlane.identity.jwt.file", file.toString()), byFiles());
    for (Map<String, Object> settings : all) {
      try (Encryptor encryptor = new Encryptor(Configuration.of(settings));
          Identity identity = SharedIdentity.of(Configuration.of(settings))) {
        encrypt(encryptor);
        assertThat(identity.secondsLeft()).isBetween(1.0, 10.0);
        assertThat(identity.credentials().trust().peers()).hasSize(1);
        assertThat(identity.credentials().trust().keyService()).hasSize(2);
      }
    }
    assertThat(issued()).isEqualTo(2);
  }

  @Test
  void refusedJwtsAndTokensGiveNothing() throws Exception { // CL-IDN-036
    Path file = folder.resolve("proof");
    for (String wrong : new String[] {jwt("spiffe://other/x"), jwt(PRODUCER) + "x", "a.b.c"}) {
      Files.writeString(file, wrong);
      try (Identity identity =
          SharedIdentity.of(
              Configuration.of(settings("cipherlane.identity.jwt.file", file.toString())))) {
        assertThatThrownBy(identity::credentials)
            .hasMessageContaining("key-service-unavailable")
            .hasMessageNotContaining("no answer")
            .hasMessageNotContaining(wrong);
      }
    }
    Files.writeString(file, "clbt_" + "A".repeat(43));
    try (Identity identity =
        SharedIdentity.of(
            Configuration.of(settings("cipherlane.identity.token.file", file.toString())))) {
      assertThatThrownBy(identity::credentials)
          .hasMessageContaining("token.file")
          .hasMessageNotContaining("no answer");
    }
  }

  /** An admin client that makes topics, then a producer: a Connect worker does no less. */
  @Test
  void aTokenServesClientsOneAfterAnother() throws Exception { // CL-IDN-037 CL-IDN-035
    Map<String, Object> settings = byToken();
    for (int i = 0; i < 3; i++) {
      try (Encryptor encryptor = new Encryptor(Configuration.of(settings))) {
        encrypt(encryptor);
      }
    }
    assertThat(issued()).isBetween(1L, 3L);
    Thread.sleep(10_500); // what was left has ended
    try (Identity identity = SharedIdentity.of(Configuration.of(settings))) {
      assertThatThrownBy(identity::credentials).hasMessageContaining("was used");
      assertThat(Files.readString(service.auditFile())).doesNotContain("unauthenticated");
      Files.writeString(folder.resolve("token"), token());
      until(() -> identity.secondsLeft() > 0);
    }
  }

  /** The key service ends the connection with that answer, which must be read all the same. */
  @Test
  void aCertificateThatNamesNobodyIsToldSo() throws Exception {
    Path dev = folder.resolve("dev");
    Path certificate = folder.resolve("nobody.pem");
    Path key = folder.resolve("nobody-key.pem");
    String command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /O=nobody -days 1"
            + (" -CA " + dev.resolve("ca.pem") + " -CAkey " + dev.resolve("ca-key.pem"))
            + (" -out " + certificate + " -keyout " + key);
    Process openssl = new ProcessBuilder(command.split(" ")).redirectErrorStream(true).start();
    String said = new String(openssl.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(openssl.waitFor()).as(said).isZero();
    Map<String, Object> settings =
        settings(
            "cipherlane.keyservice.tls.certificate", certificate.toString(),
            "cipherlane.keyservice.tls.key", key.toString());
    for (int i = 0; i < 3; i++) {
      try (Encryptor encryptor = new Encryptor(Configuration.of(settings))) {
        assertThatThrownBy(() -> encrypt(encryptor)).hasMessageContaining("unauthenticated");
      }
    }
  }

  @Test
  void outlivesAnOutageButNotItsCertificate() throws Exception { // CL-IDN-032 CL-IDN-036
    Map<String, Object> settings = byFiles();
    try (Identity identity = SharedIdentity.of(Configuration.of(settings))) {
      until(() -> identity.secondsLeft() > 1 && identity.secondsLeft() <= 10);
      Credentials last = identity.credentials();
      service.kill();
      until(() -> identity.secondsLeft() < 3);
      assertThat(identity.credentials()).isSameAs(last);
      // The dev certificate of the files still holds, so take it away to see the end.
      Files.writeString(Path.of((String) settings.get("cipherlane.keyservice.tls.key")), "");
      until(() -> identity.secondsLeft() < 0);
      assertThatThrownBy(identity::credentials)
          .isInstanceOf(CipherlaneException.class)
          .hasMessageContaining("the last certificate has ended");
    }
  }

  @Test
  void hundredClientsRenewOnce() throws Exception { // CL-IDN-031
    Map<String, Object> settings = byToken();
    List<Encryptor> clients = new ArrayList<>();
    try {
      for (int i = 0; i < 100; i++) {
        clients.add(new Encryptor(Configuration.of(new HashMap<>(settings))));
      }
      clients.parallelStream().forEach(WithKeyServiceTest::encrypt);
      assertThat(issued()).isEqualTo(1);
    } finally {
      clients.forEach(Encryptor::close);
    }
  }

  @Test
  void followsARolloverOfTheCa() throws Exception { // CL-IDN-034
    Map<String, Object> settings = byToken();
    try (Identity identity = SharedIdentity.of(Configuration.of(settings));
        Encryptor encryptor = new Encryptor(Configuration.of(settings))) {
      Credentials before = identity.credentials();
      service.operate("ca", "begin");
      until(() -> identity.credentials().trust().peers().size() == 2);
      Credentials between = identity.credentials();
      assertThat(between.trust().keyService()).containsAll(before.trust().keyService());
      service.operate("ca", "finish", "--force");
      until(
          () ->
              !identity
                  .credentials()
                  .leaf()
                  .getIssuerX500Principal()
                  .equals(before.leaf().getIssuerX500Principal()));
      encrypt(encryptor);
    }
  }

  @Test
  void keysAreNowhereButInMemory() throws Exception { // CL-IDN-030
    List<byte[]> secrets = new ArrayList<>();
    Map<String, Object> settings = byToken();
    try (Identity identity = SharedIdentity.of(Configuration.of(settings))) {
      byte[] key = identity.credentials().key().getEncoded();
      secrets.add(Arrays.copyOfRange(key, 36, key.length)); // the number itself
      secrets.add(Base64.getEncoder().encode(key));
    }
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.filter(Files::isRegularFile).toList()) {
        String content = new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1);
        for (byte[] secret : secrets) {
          assertThat(content.contains(new String(secret, StandardCharsets.ISO_8859_1))).isFalse();
        }
      }
    }
  }
}
