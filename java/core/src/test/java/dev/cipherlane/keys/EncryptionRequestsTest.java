package dev.cipherlane.keys;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.TestKeys;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** How the cache for encrypting asks the key service, and what it holds. */
class EncryptionRequestsTest extends EncryptionKeysFixture {
  @Test
  void thousandThreadsMakeOneRequest() throws InterruptedException { // CL-KEY-009
    CountDownLatch answering = new CountDownLatch(1);
    source.encryption =
        (topic, usage) -> {
          await(answering);
          return answer();
        };
    Set<DataKey> seen = ConcurrentHashMap.newKeySet();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < 1000; i++) {
      Thread thread = new Thread(() -> seen.add(get()));
      thread.start();
      threads.add(thread);
    }
    answering.countDown();
    for (Thread thread : threads) {
      thread.join();
    }
    assertThat(seen).hasSize(1);
    assertThat(source.calls).hasValue(1);
  }

  @Test
  void failureIsNotRepeatedWithinTheBackoff() { // CL-KEY-012
    answerWith(ErrorCode.KEY_SERVICE_UNAVAILABLE);
    for (int i = 0; i < 100; i++) {
      assertThat(failure()).isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
    }
    at(7);
    assertThat(failure()).isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
    assertThat(source.calls).hasValue(1);
    at(13);
    assertThat(failure()).isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
    assertThat(source.calls).hasValue(2);
    source.encryption = (topic, usage) -> answer();
    at(26);
    assertThat(get()).isNotNull();
  }

  @Test
  void errorsNameTopicAndCauseForEachCaller() {
    answerWith(ErrorCode.NOT_AUTHORIZED);
    for (int i = 0; i < 2; i++) {
      assertThatThrownBy(this::get)
          .hasMessageContaining("topic topic")
          .hasMessageContaining("not-authorized")
          .hasCauseInstanceOf(CipherlaneException.class);
    }
  }

  @Test
  void callerWaitsNoLongerThanTheDeadline() { // CL-KEY-011
    CountDownLatch never = new CountDownLatch(1);
    source.encryption =
        (topic, usage) -> {
          await(never);
          return answer();
        };
    KeyLimits hasty = new KeyLimits(Duration.ofMillis(100), Duration.ofSeconds(1), 16);
    try (EncryptionKeys hastyKeys = new EncryptionKeys(source, clock::get, hasty)) {
      long begin = System.nanoTime();
      assertThatThrownBy(() -> hastyKeys.get("topic", 0))
          .hasMessageContaining("key-service-unavailable")
          .hasMessageContaining("cipherlane.keys.deadline.ms");
      assertThat(Duration.ofNanos(System.nanoTime() - begin))
          .isBetween(Duration.ofMillis(100), Duration.ofSeconds(4));
    }
    never.countDown();
  }

  @Test
  void interruptedCallerGivesUp() {
    CountDownLatch never = new CountDownLatch(1);
    source.encryption =
        (topic, usage) -> {
          await(never);
          return answer();
        };
    Thread.currentThread().interrupt();
    assertThat(failure()).isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
    assertThat(Thread.interrupted()).isTrue();
    never.countDown();
  }

  @Test
  void cacheIsBoundedAndWhatLeavesIsWiped() { // CL-KEY-013
    List<DataKey> all = new ArrayList<>();
    for (int i = 0; i < 40; i++) {
      at(i);
      current = TestKeys.bytes();
      all.add(keys.get("topic-" + i, clock.get()).key());
      keys.get("topic-0", clock.get());
      assertThat(keys.size()).isLessThanOrEqualTo(16);
    }
    assertThat(all.stream().filter(key -> !key.secret().isDestroyed())).hasSize(16);
    assertThat(all.get(0).secret().isDestroyed()).as("the one used all the time").isFalse();
    assertThat(all.get(1).secret().isDestroyed()).as("the one used longest ago").isTrue();
  }

  @Test
  void closeWipesAllAndAnswersWhoWaits() throws Exception { // CL-KEY-013
    DataKey key = get();
    CountDownLatch never = new CountDownLatch(1);
    source.encryption =
        (topic, usage) -> {
          await(never);
          return answer();
        };
    ExecutorService thread = Executors.newSingleThreadExecutor();
    var waiting =
        thread.submit(
            () ->
                catchThrowableOfType(
                    CipherlaneException.class, () -> keys.get("other", clock.get())));
    until(() -> source.calls.get() == 2);
    keys.close();
    assertThat(key.secret().isDestroyed()).isTrue();
    assertThat(waiting.get(5, TimeUnit.SECONDS).code()).isEqualTo(ErrorCode.CLOSED);
    assertThat(failure()).isEqualTo(ErrorCode.CLOSED);
    never.countDown();
    thread.shutdown();
  }

  @Test
  void usageIsReportedOnceAndAgainIfItDidNotArrive() {
    List<Optional<Usage>> reported = new ArrayList<>();
    source.encryption =
        (topic, usage) -> {
          reported.add(usage);
          if (reported.size() == 2) {
            throw new CipherlaneException(ErrorCode.KEY_SERVICE_UNAVAILABLE, "on purpose");
          }
          return answer();
        };
    DataKey key = get();
    encrypt(key, 3);
    at(100);
    assertThat(failure()).isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
    at(113);
    encrypt(get(), 1);
    at(213);
    get();
    assertThat(reported)
        .containsExactly(
            Optional.empty(),
            Optional.of(new Usage(key.kid(), 3, 30)),
            Optional.of(new Usage(key.kid(), 3, 30)),
            Optional.of(new Usage(key.kid(), 1, 10)));
  }

  private void encrypt(DataKey key, int records) {
    for (int i = 0; i < records; i++) {
      key.session(clock.get()).tryEncrypt(new byte[1], new byte[10], new byte[50], 0, clock.get());
      key.session(clock.get()).addBytes(10);
    }
  }

  @Test
  void invalidTopicsAreNeverAskedAbout() {
    assertThatThrownBy(() -> keys.get("no topic", 0)).hasMessageContaining("topic-invalid");
    assertThat(source.calls).hasValue(0);
    assertThat(keys.size()).isZero();
  }

  @Test
  void unexpectedFailureOfTheSourceIsToldAndDoesNotBlock() {
    source.encryption =
        (topic, usage) -> {
          throw new StackOverflowError("on purpose");
        };
    assertThat(failure()).isEqualTo(ErrorCode.INTERNAL);
  }
}
