package dev.cipherlane.keyservice;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.TestKeys;
import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.identity.TlsFiles;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.Mode;
import dev.cipherlane.keys.Usage;
import dev.cipherlane.keyservice.HostileKeyService.Reply;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The client against servers that behave well and badly, over real TLS. */
class KeyServiceClientTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(15);

  @TempDir Path folder;

  private final byte[] key = TestKeys.bytes();
  private HostileKeyService service;

  @BeforeEach
  void start() throws IOException {
    service = HostileKeyService.start(folder);
    service.handler = (path, request) -> good();
  }

  private Reply good() {
    return Reply.ok(HostileKeyService.encryptionKey("scope", key, 60));
  }

  @AfterEach
  void stop() {
    service.close();
  }

  private KeyServiceClient client(String... urls) {
    return client(service.files(), urls);
  }

  private static KeyServiceClient client(TlsFiles files, String... urls) {
    List<URI> addresses = Arrays.stream(urls).map(URI::create).toList();
    return new KeyServiceClient(addresses, files, TIMEOUT, TIMEOUT, () -> 7);
  }

  private static ErrorCode failure(KeyServiceClient client) {
    return catchThrowableOfType(
            CipherlaneException.class, () -> client.encryptionKey("topic", Optional.empty()))
        .code();
  }

  /** An address where nobody listens. */
  private static String nobody() throws IOException {
    try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      return "https://127.0.0.1:" + socket.getLocalPort();
    }
  }

  @Test
  void asksAsSpecified() {
    KeySource.EncryptionAnswer answer =
        client(service.url())
            .encryptionKey("topic", Optional.of(new Usage(TestKeys.kid(key), 3, 14)));
    assertThat(answer.mode()).isEqualTo(Mode.ENCRYPT);
    assertThat(answer.key().orElseThrow().kid()).isEqualTo(TestKeys.kid(key));
    assertThat(answer.term().expiresAt()).isEqualTo(7 + TimeUnit.SECONDS.toNanos(60));
    assertThat(service.requests)
        .containsExactly(
            "/v1/encryption-key {\"topic\":\"topic\",\"usage\":{\"kid\":\""
                + TestKeys.kid(key)
                + "\",\"records\":3,\"bytes\":14}}");
  }

  @Test
  void renewalsAreSpread() { // CL-KEY-006
    KeyServiceClient client = client(service.url());
    Set<Long> times = new HashSet<>();
    for (int i = 0; i < 5; i++) {
      long refreshAt = client.encryptionKey("topic", Optional.empty()).term().refreshAt() - 7;
      assertThat(refreshAt).isBetween(TimeUnit.SECONDS.toNanos(54), TimeUnit.SECONDS.toNanos(60));
      times.add(refreshAt);
    }
    assertThat(times).hasSize(5);
  }

  @Test
  void asksForManyKidsAtOnce() {
    service.handler =
        (path, request) -> Reply.ok(HostileKeyService.decryptionKeys("scope", key, 60));
    KeyId kid = TestKeys.kid(key);
    KeySource.DecryptionAnswer answer = client(service.url()).decryptionKeys("topic", List.of(kid));
    assertThat(answer.keys().get(kid)).isInstanceOf(KeySource.KeyGiven.class);
    assertThat(service.requests)
        .containsExactly("/v1/decryption-keys {\"topic\":\"topic\",\"kids\":[\"" + kid + "\"]}");
  }

  @ParameterizedTest
  @ValueSource(strings = {"EC", "RSA", "Ed25519"})
  void clientKeysOfAllKindsWork(String algorithm) throws IOException {
    TestCertificates ca = TestCertificates.create();
    TlsFiles files = ca.files(folder, ca.client(algorithm));
    try (HostileKeyService other =
        HostileKeyService.start(ca.serverContext(ca.server("127.0.0.1")), files)) {
      other.handler = (path, request) -> good();
      assertThat(client(files, other.url()).encryptionKey("topic", Optional.empty()).mode())
          .isEqualTo(Mode.ENCRYPT);
    }
  }

  @Test
  void nextAddressIsTriedWhenOneCannotBeReached() throws IOException { // CL-KEY-014
    KeyServiceClient client = client(nobody(), service.url());
    assertThat(client.encryptionKey("topic", Optional.empty()).mode()).isEqualTo(Mode.ENCRYPT);
    assertThat(client.encryptionKey("topic", Optional.empty()).mode()).isEqualTo(Mode.ENCRYPT);
  }

  @ParameterizedTest
  @ValueSource(ints = {429, 500, 502, 503})
  void nextAddressIsTriedOnStatusesThatPass(int status) { // CL-KEY-014
    service.handler =
        (path, request) ->
            service.requests.size() == 1 ? Reply.json(status, "text/plain", "") : good();
    // The same server twice: the second address is asked once the first said no.
    assertThat(client(service.url(), service.url()).encryptionKey("topic", Optional.empty()).mode())
        .isEqualTo(Mode.ENCRYPT);
    assertThat(service.requests).hasSize(2);
  }

  @ParameterizedTest
  @ValueSource(ints = {400, 401, 403, 404})
  void refusalsAreNotTriedElsewhere(int status) { // CL-KEY-014
    service.handler = (path, request) -> Reply.problem(status, "not-authorized");
    failure(client(service.url(), service.url()));
    assertThat(service.requests).hasSize(1);
  }

  @Test
  void badAnswersAreNotTriedElsewhere() {
    service.handler = (path, request) -> Reply.json(200, "application/json", "garbage");
    assertThat(failure(client(service.url(), service.url())))
        .isEqualTo(ErrorCode.KEY_SERVICE_BAD_ANSWER);
    assertThat(service.requests).hasSize(1);
  }

  @Test
  void lastErrorIsToldWhenNoAddressAnswers() throws IOException { // CL-ERR-003
    assertThat(failure(client(nobody(), nobody()))).isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
  }

  @ParameterizedTest
  @ValueSource(ints = {301, 302, 303, 307, 308})
  void redirectsAreNotFollowed(int status) { // CL-KEY-002
    service.handler =
        (path, request) ->
            path.startsWith("/v1/")
                ? new Reply(status, "text/html", "", Map.of("Location", service.url() + "/moved"))
                : good();
    assertThat(failure(client(service.url()))).isEqualTo(ErrorCode.KEY_SERVICE_BAD_ANSWER);
    assertThat(service.requests).hasSize(1);
  }

  @Test
  void longAnswersAreCutOff() { // CL-KEY-003
    service.handler =
        (path, request) -> Reply.json(200, "application/json", " ".repeat(BoundedBody.MAX + 1));
    assertThat(failure(client(service.url()))).isEqualTo(ErrorCode.KEY_SERVICE_BAD_ANSWER);
    String answer = HostileKeyService.encryptionKey("scope", key, 60).toString();
    service.handler =
        (path, request) ->
            Reply.json(
                200, "application/json", answer + " ".repeat(BoundedBody.MAX - answer.length()));
    assertThat(client(service.url()).encryptionKey("topic", Optional.empty()).mode())
        .isEqualTo(Mode.ENCRYPT);
  }

  @Test
  void slowAnswersTimeOut() {
    service.handler =
        (path, request) -> {
          Thread.sleep(30_000);
          return good();
        };
    Duration hasty = Duration.ofSeconds(1);
    long begin = System.nanoTime();
    assertThat(
            failure(
                new KeyServiceClient(
                    List.of(URI.create(service.url())), service.files(), TIMEOUT, hasty, () -> 7)))
        .isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isBetween(hasty, TIMEOUT);
  }

  @Test
  void serverThatNeverShakesHandsTimesOut() throws IOException {
    try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      KeyServiceClient client =
          new KeyServiceClient(
              List.of(URI.create("https://127.0.0.1:" + silent.getLocalPort())),
              service.files(),
              Duration.ofMillis(300),
              Duration.ofSeconds(60),
              () -> 7);
      long begin = System.nanoTime();
      assertThat(failure(client)).isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
      assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(10));
    }
  }

  @Test
  void certificateOfAnotherAuthorityIsRefused() throws IOException { // CL-KEY-001
    TestCertificates stranger = TestCertificates.create();
    Path own = Files.createDirectory(folder.resolve("own"));
    TlsFiles files = stranger.files(own, stranger.client("EC"));
    assertThat(failure(client(files, service.url()))).isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
    assertThat(service.requests).isEmpty();
  }

  @Test
  void certificateForAnotherNameIsRefused() { // CL-KEY-001
    String name = service.url().replace("127.0.0.1", "localhost");
    assertThat(failure(client(name))).isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
    assertThat(service.requests).isEmpty();
  }

  @Test
  void serverThatDoesNotSpeakTlsIsRefused() throws IOException { // CL-KEY-001
    try (ServerSocket plain = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      Thread answering = new Thread(() -> answerInPlaintext(plain));
      answering.start();
      assertThat(failure(client("https://127.0.0.1:" + plain.getLocalPort())))
          .isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
    }
  }

  private static void answerInPlaintext(ServerSocket plain) {
    try (var connection = plain.accept()) {
      connection
          .getOutputStream()
          .write("HTTP/1.1 200 OK\r\n\r\n".getBytes(java.nio.charset.StandardCharsets.US_ASCII));
    } catch (IOException e) {
      // The client hung up.
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"http://127.0.0.1:1", "ftp://127.0.0.1:1", "//127.0.0.1:1", "https:///"})
  void addressesWithoutTlsAreRefused(String url) { // CL-KEY-002
    assertThatThrownBy(() -> client(url)).hasMessageContaining("configuration-invalid");
  }

  @Test
  void filesThatDoNotFitAreRefused() throws IOException { // CL-CFG-002
    TlsFiles good = service.files();
    Path garbage = Files.writeString(folder.resolve("garbage.pem"), "-----BEGIN garbage");
    Path missing = folder.resolve("missing.pem");
    Path badKey =
        Files.writeString(
            folder.resolve("bad-key.pem"),
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");
    for (Path wrong : List.of(garbage, missing)) {
      assertThatThrownBy(
              () -> client(new TlsFiles(wrong, good.certificate(), good.key()), "https://a"))
          .hasMessageContaining("cipherlane.keyservice.tls.ca");
      assertThatThrownBy(() -> client(new TlsFiles(good.ca(), wrong, good.key()), "https://a"))
          .hasMessageContaining("cipherlane.keyservice.tls.certificate");
      assertThatThrownBy(
              () -> client(new TlsFiles(good.ca(), good.certificate(), wrong), "https://a"))
          .hasMessageContaining("cipherlane.keyservice.tls.key");
    }
    assertThatThrownBy(
            () -> client(new TlsFiles(good.ca(), good.certificate(), badKey), "https://a"))
        .hasMessageContaining("cipherlane.keyservice.tls.key");
  }

  @Test
  void errorsHoldNoKeys() { // CL-KEY-015 CL-ERR-001
    String text = java.util.Base64.getEncoder().encodeToString(key);
    service.handler =
        (path, request) ->
            Reply.json(200, "application/json", "{\"key\": \"" + text + "\", \"" + text + "\": ]}");
    assertThatThrownBy(() -> client(service.url()).encryptionKey("topic", Optional.empty()))
        .satisfies(
            e ->
                assertThat(org.assertj.core.util.Throwables.getStackTrace(e)).doesNotContain(text));
  }
}
