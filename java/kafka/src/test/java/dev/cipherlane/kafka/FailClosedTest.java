package dev.cipherlane.kafka;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.gson.JsonObject;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.TestKeys;
import dev.cipherlane.keyservice.HostileKeyService;
import dev.cipherlane.keyservice.HostileKeyService.Handler;
import dev.cipherlane.keyservice.HostileKeyService.Reply;
import dev.cipherlane.testing.KeyServiceProcess;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Whatever the key service does, no plaintext reaches the broker. CL-KAF-001 CL-ENV-044 CL-ERR-003
 */
@ExtendWith(Cluster.class)
class FailClosedTest {
  @TempDir Path folder;

  private static final String TOPIC = "encrypted." + UUID.randomUUID();

  private final Canaries canaries = new Canaries();

  @AfterEach
  void noCanaryIsStored() throws IOException {
    canaries.assertNoneStored();
  }

  /** Ways to answer badly, and what send() then says. */
  enum Bad {
    REFUSED(ErrorCode.NOT_AUTHORIZED, (path, request) -> Reply.problem(403, "not-authorized")),
    UNKNOWN_TOPIC(ErrorCode.TOPIC_UNKNOWN, (path, request) -> Reply.problem(403, "topic-unknown")),
    FORBIDDEN_BARE(
        ErrorCode.KEY_SERVICE_BAD_ANSWER, (path, request) -> Reply.json(403, "text/html", "no")),
    NOT_FOUND(ErrorCode.KEY_SERVICE_BAD_ANSWER, (path, request) -> Reply.problem(404, "not-found")),
    FAILED(ErrorCode.KEY_SERVICE_INTERNAL, (path, request) -> Reply.problem(500, "internal")),
    FAILED_BARE(
        ErrorCode.KEY_SERVICE_UNAVAILABLE, (path, request) -> Reply.json(500, "text/plain", "")),
    UNAVAILABLE(
        ErrorCode.AUDIT_UNAVAILABLE, (path, request) -> Reply.problem(503, "audit-unavailable")),
    MOVED(
        ErrorCode.KEY_SERVICE_BAD_ANSWER,
        (path, request) ->
            new Reply(302, "text/html", "", Map.of("Location", "https://127.0.0.1:1/"))),
    GARBAGE(
        ErrorCode.KEY_SERVICE_BAD_ANSWER,
        (path, request) -> Reply.json(200, "application/json", "\u0000{]garbage")),
    EMPTY(
        ErrorCode.KEY_SERVICE_BAD_ANSWER,
        (path, request) -> Reply.json(200, "application/json", "{}")),
    NO_MODE(ErrorCode.KEY_SERVICE_BAD_ANSWER, (path, request) -> without("mode")),
    NO_KEY(ErrorCode.KEY_SERVICE_BAD_ANSWER, (path, request) -> without("key")),
    ENDLESS(
        ErrorCode.KEY_SERVICE_BAD_ANSWER,
        (path, request) -> Reply.json(200, "application/json", " ".repeat(1024 * 1024 + 1))),
    SLOW(
        ErrorCode.KEY_SERVICE_UNAVAILABLE,
        (path, request) -> {
          Thread.sleep(4_000);
          return Reply.ok(good());
        }),
    HANGS_UP(
        ErrorCode.KEY_SERVICE_UNAVAILABLE,
        (path, request) -> {
          throw new IOException("on purpose");
        }),
    SHORT_KEY(ErrorCode.KEY_MALFORMED, (path, request) -> with("key", base64(31))),
    LONG_KEY(ErrorCode.KEY_MALFORMED, (path, request) -> with("key", base64(33))),
    NO_KEY_BYTES(ErrorCode.KEY_MALFORMED, (path, request) -> with("key", "")),
    OTHER_KEY(ErrorCode.KEY_ID_MISMATCH, (path, request) -> with("key", base64(32))),
    FORBID(
        ErrorCode.TOPIC_FORBIDDEN,
        (path, request) ->
            Reply.json(
                200,
                "application/json",
                "{\"mode\": \"forbid\", \"refresh_in\": 1, \"expires_in\": 1}"));

    final ErrorCode code;

    @SuppressWarnings("ImmutableEnumChecker") // Functions without state, all of them.
    final Handler handler;

    Bad(ErrorCode code, Handler handler) {
      this.code = code;
      this.handler = handler;
    }

    private static JsonObject good() {
      return HostileKeyService.encryptionKey("scope", TestKeys.bytes(), 60);
    }

    private static Reply without(String member) {
      JsonObject answer = good();
      answer.remove(member);
      return Reply.ok(answer);
    }

    private static Reply with(String member, String value) {
      JsonObject answer = good();
      answer.addProperty(member, value);
      return Reply.ok(answer);
    }

    private static String base64(int size) {
      byte[] bytes = new byte[size];
      bytes[0] = 1;
      return Base64.getEncoder().encodeToString(bytes);
    }
  }

  @ParameterizedTest
  @EnumSource(Bad.class)
  void keyServiceThatAnswersBadly(Bad bad) throws IOException {
    try (HostileKeyService service = HostileKeyService.start(folder)) {
      service.handler = bad.handler;
      assertRefused(service.settings(), bad.code);
    }
  }

  @Test
  void keyServiceThatIsDownAtStart() throws IOException {
    Map<String, Object> settings;
    try (HostileKeyService service = HostileKeyService.start(folder)) {
      settings = service.settings();
    }
    assertRefused(settings, ErrorCode.KEY_SERVICE_UNAVAILABLE);
  }

  @Test
  void certificateForAnotherAddress() throws IOException { // CL-KEY-001
    try (HostileKeyService service = HostileKeyService.start(folder, "127.0.0.2")) {
      assertRefused(service.settings(), ErrorCode.KEY_SERVICE_UNAVAILABLE);
      assertThat(service.requests).isEmpty();
    }
  }

  private void assertRefused(Map<String, Object> settings, ErrorCode code) {
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(Clients.producing(settings))) {
      RecordRefusedException error = refusal(producer);
      assertThat(error.code()).isEqualTo(code);
      // And not only the first time.
      assertThat(refusal(producer).code()).isEqualTo(code);
    }
  }

  /** Sends a canary, which must not succeed. */
  private RecordRefusedException refusal(KafkaProducer<byte[], byte[]> producer) {
    RecordRefusedException error =
        catchThrowableOfType(
            RecordRefusedException.class,
            () -> Clients.send(producer, new ProducerRecord<>(TOPIC, canaries.value())));
    assertThat(error).as("send() throws").isNotNull();
    assertThat(error).hasMessageContaining(TOPIC).hasMessageContaining(error.code().code());
    return error;
  }

  @Test
  void keyServiceThatGoesDownAndComesBack() throws Exception { // CL-KEY-005 CL-KEY-007
    String policy = Cluster.POLICY.replace("expires_in: 5m", "expires_in: 2s");
    try (KeyServiceProcess service = KeyServiceProcess.start(folder, policy);
        KafkaProducer<byte[], byte[]> producer =
            new KafkaProducer<>(Clients.producing(service.settings("producer")))) {
      Clients.send(producer, new ProducerRecord<>(TOPIC, canaries.value()));
      service.kill();
      Clients.send(producer, new ProducerRecord<>(TOPIC, canaries.value()));
      Thread.sleep(2_100);
      RecordRefusedException error = refusal(producer);
      assertThat(error.code()).isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
      assertThat(error.code().retriable()).isTrue(); // CL-ERR-004
      service.start();
      Thread.sleep(200);
      Clients.send(producer, new ProducerRecord<>(TOPIC, canaries.value()));
    }
    assertThat(Clients.stored(TOPIC, 3)).hasSize(3);
  }

  @Test
  void topicsThatThePolicyDoesNotLetThrough() {
    try (KafkaProducer<byte[], byte[]> producer = Clients.producer()) {
      assertThat(refusal(producer, "forbidden.a")).isEqualTo(ErrorCode.TOPIC_FORBIDDEN);
      assertThat(refusal(producer, "unknown.a")).isEqualTo(ErrorCode.TOPIC_UNKNOWN);
    }
  }

  @Test
  void principalWithoutTheRight() {
    Map<String, Object> settings = Cluster.keyService().settings("stranger");
    assertRefused(settings, ErrorCode.NOT_AUTHORIZED);
  }

  @Test
  void valueThatLooksLikeAnEnvelopeInAClearTopic() { // CL-ENV-041
    try (KafkaProducer<byte[], byte[]> producer = Clients.producer()) {
      RecordRefusedException error =
          catchThrowableOfType(
              RecordRefusedException.class,
              () ->
                  Clients.send(
                      producer,
                      new ProducerRecord<>("clear.a", new byte[] {(byte) 0xC1, (byte) 0x9E, 1})));
      assertThat(error.code()).isEqualTo(ErrorCode.AMBIGUOUS_PLAINTEXT);
    }
  }

  private ErrorCode refusal(KafkaProducer<byte[], byte[]> producer, String name) {
    return catchThrowableOfType(
            RecordRefusedException.class,
            () -> Clients.send(producer, new ProducerRecord<>(name, canaries.value())))
        .code();
  }

  @Test
  void closedProducerInterceptor() {
    EncryptingProducerInterceptor<byte[], byte[]> interceptor =
        new EncryptingProducerInterceptor<>();
    interceptor.configure(Clients.producing(Cluster.keyService().settings("producer")));
    interceptor.close();
    var refused = interceptor.onSend(new ProducerRecord<>(TOPIC, canaries.value()));
    assertThat(catchThrowableOfType(RecordRefusedException.class, refused::value).code())
        .isEqualTo(ErrorCode.CLOSED);
  }

  @Test
  void nameThatIsNoTopic() { // Kafka itself refuses it as well, but only after the interceptor.
    var interceptor = new EncryptingProducerInterceptor<byte[], byte[]>();
    interceptor.configure(Clients.producing(Cluster.keyService().settings("producer")));
    var refused = interceptor.onSend(new ProducerRecord<>("../no topic", canaries.value()));
    assertThat(catchThrowableOfType(RecordRefusedException.class, refused::value).code())
        .isEqualTo(ErrorCode.TOPIC_INVALID);
    interceptor.close();
  }

  @Test
  void interceptorThatWasNeverConfigured() {
    var refused =
        new EncryptingProducerInterceptor<byte[], byte[]>()
            .onSend(new ProducerRecord<>(TOPIC, canaries.value()));
    assertThat(catchThrowableOfType(RecordRefusedException.class, refused::value).code())
        .isEqualTo(ErrorCode.INTERNAL);
    assertThat(refused.toString()).doesNotContain("plaintext");
  }
}
