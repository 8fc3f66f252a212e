package dev.cipherlane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.keyservice.HostileKeyService;
import dev.cipherlane.keyservice.HostileKeyService.Reply;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Clients of one configuration share one cache and one client of the key service. */
class SharedKeysTest {
  private static final byte[] VALUE = {1, 2, 3};

  @TempDir Path folder;

  private final byte[] key = TestKeys.bytes();
  private final List<AutoCloseable> opened = new ArrayList<>();
  private HostileKeyService service;

  @BeforeEach
  void start() throws IOException {
    service = HostileKeyService.start(folder);
    service.handler =
        (path, request) ->
            Reply.ok(
                path.endsWith("encryption-key")
                    ? HostileKeyService.encryptionKey("scope", key, 60)
                    : HostileKeyService.decryptionKeys("scope", key, 60));
  }

  @AfterEach
  void stop() throws Exception {
    for (AutoCloseable client : opened) {
      client.close();
    }
    service.close();
  }

  private Encryptor encryptor(Object... more) {
    Encryptor encryptor = new Encryptor(configuration(more));
    opened.add(encryptor);
    return encryptor;
  }

  private Decryptor decryptor() {
    Decryptor decryptor = new Decryptor(configuration());
    opened.add(decryptor);
    return decryptor;
  }

  private Configuration configuration(Object... more) {
    Map<String, Object> settings = service.settings();
    settings.put("cipherlane.keyservice.connect.timeout.ms", 15_000);
    settings.put("cipherlane.keyservice.request.timeout.ms", 15_000);
    for (int i = 0; i < more.length; i += 2) {
      settings.put((String) more[i], more[i + 1]);
    }
    return Configuration.of(settings);
  }

  @Test
  void hundredClientsMakeOneConnectionAndOneRequest() { // CL-KEY-009
    for (int i = 0; i < 100; i++) {
      byte[] envelope = encryptor().encrypt("topic", VALUE);
      Decryptor decryptor = decryptor();
      assertThat(decryptor.decrypt("topic", RecordKey.UNKNOWN, envelope, decryptor.deadline()))
          .isEqualTo(VALUE);
    }
    assertThat(service.requests).hasSize(2);
    assertThat(service.connections()).isEqualTo(1);
    assertThat(encryptor().numbers().keys().requests()).isEqualTo(2);
    assertThat(encryptor().numbers().keys().cached()).isEqualTo(2);
    assertThat(encryptor().numbers().keys().leaseSecondsLeft()).isBetween(50.0, 60.0);
  }

  @Test
  void otherSettingsOfRecordsShareAsWell() {
    encryptor().encrypt("topic", VALUE);
    encryptor("cipherlane.record.key.topics", "x").encrypt("topic", VALUE);
    assertThat(service.requests).hasSize(1);
  }

  @Test
  void otherSettingsOfKeysDoNotShare() {
    encryptor().encrypt("topic", VALUE);
    encryptor("cipherlane.keys.cache.max", 16).encrypt("topic", VALUE);
    assertThat(service.requests).hasSize(2);
  }

  @Test
  void whoClosedIsRefusedAndTheOthersGoOn() {
    Encryptor first = encryptor();
    Encryptor second = encryptor();
    byte[] envelope = first.encrypt("topic", VALUE);
    Decryptor decryptor = decryptor();
    first.close();
    first.close();
    assertThat(failure(() -> first.encrypt("topic", VALUE))).isEqualTo(ErrorCode.CLOSED);
    assertThat(second.encrypt("topic", VALUE)).isNotNull();
    decryptor.close();
    assertThat(
            failure(() -> decryptor.decrypt("topic", RecordKey.UNKNOWN, envelope, Long.MAX_VALUE)))
        .isEqualTo(ErrorCode.CLOSED);
    assertThat(service.requests).hasSize(1);
  }

  @Test
  void afterTheLastCloseKeysAreAskedForAgain() { // CL-KEY-013
    encryptor().close();
    Encryptor first = encryptor();
    first.encrypt("topic", VALUE);
    first.close();
    encryptor().encrypt("topic", VALUE);
    assertThat(encryptionRequestsWithoutUsage()).isEqualTo(2);
  }

  private long encryptionRequestsWithoutUsage() {
    return service.requests.stream().filter(request -> !request.contains("usage")).count();
  }

  @Test
  void lastCloseReportsWhatWasEncrypted() { // CL-KEY-017
    Encryptor first = encryptor();
    Encryptor second = encryptor();
    first.encrypt("a", VALUE);
    second.encrypt("a", VALUE);
    second.encrypt("b", VALUE);
    second.encrypt("c", null);
    first.close();
    assertThat(service.requests).hasSize(3);
    second.close();
    assertThat(service.requests.subList(3, service.requests.size()))
        .containsExactlyInAnyOrder(usage("a", 2, 6), usage("b", 1, 3));
  }

  private String usage(String topic, int records, int bytes) {
    return "/v1/encryption-key {\"topic\":\"%s\",\"usage\":{\"kid\":\"%s\",\"records\":%d,\"bytes\":%d}}"
        .formatted(topic, TestKeys.kid(key), records, bytes);
  }

  @Test
  void lastReportWaitsNoLongerThanASecondAndMayFail() { // CL-KEY-017
    Encryptor encryptor = encryptor();
    encryptor.encrypt("topic", VALUE);
    service.handler =
        (path, request) -> {
          Thread.sleep(30_000);
          return Reply.problem(503, "internal");
        };
    long begin = System.nanoTime();
    encryptor.close();
    assertThat(Duration.ofNanos(System.nanoTime() - begin))
        .isBetween(Duration.ofMillis(900), Duration.ofSeconds(10));
  }

  @Test
  void refusedReportIsNoError() { // CL-KEY-017
    Encryptor encryptor = encryptor();
    encryptor.encrypt("topic", VALUE);
    service.handler = (path, request) -> Reply.problem(403, "not-authorized");
    encryptor.close();
    assertThat(service.requests).hasSize(2);
  }

  @Test
  void filesThatCannotBeUsedAreToldAtOnceAndAgain() { // CL-CFG-002
    for (int i = 0; i < 2; i++) {
      assertThatThrownBy(() -> encryptor("cipherlane.keyservice.tls.ca", "missing.pem"))
          .hasMessageContaining("cipherlane.keyservice.tls.ca");
    }
  }

  private static ErrorCode failure(org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
    return catchThrowableOfType(CipherlaneException.class, call).code();
  }
}
