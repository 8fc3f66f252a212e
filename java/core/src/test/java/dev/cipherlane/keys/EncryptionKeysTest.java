package dev.cipherlane.keys;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.FakeKeySource;
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
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Leases for encrypting, on a clock that the test sets. Each begins at 0, is renewed from 50 s on,
 * ends at 100 s.
 */
class EncryptionKeysTest {
  private static final KeyLimits LIMITS =
      new KeyLimits(Duration.ofSeconds(5), Duration.ofSeconds(10), 16);

  private final AtomicLong clock = new AtomicLong();
  private final FakeKeySource source = new FakeKeySource();
  private final EncryptionKeys keys = new EncryptionKeys(source, clock::get, LIMITS);
  private byte[] current = TestKeys.bytes();

  EncryptionKeysTest() {
    source.encryption = (topic, usage) -> answer();
  }

  private KeySource.EncryptionAnswer answer() {
    return new KeySource.EncryptionAnswer(
        Mode.ENCRYPT,
        Optional.of(TestKeys.dataKey("scope", current)),
        Term.of(clock.get(), 50, 100));
  }

  @AfterEach
  void close() {
    keys.close();
  }

  private DataKey get() {
    return keys.get("topic", clock.get()).key();
  }

  private void at(long seconds) {
    clock.set(TimeUnit.SECONDS.toNanos(seconds));
  }

  private ErrorCode failure() {
    return catchThrowableOfType(CipherlaneException.class, this::get).code();
  }

  private void answerWith(ErrorCode code) {
    source.encryption =
        (topic, usage) -> {
          throw new CipherlaneException(code, "on purpose");
        };
  }

  /** Waits for what another thread does, by looking. */
  private static void until(java.util.function.BooleanSupplier condition) {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as("waited for 10 s").isLessThan(end);
      Thread.onSpinWait();
    }
  }

  @Test
  void freshLeaseIsUsedWithoutAsking() {
    DataKey key = get();
    at(49);
    assertThat(get()).isSameAs(key);
    assertThat(source.calls).hasValue(1);
  }

  @Test
  void renewalHappensOffTheCallingThreadWhileTheOldLeaseServes() { // CL-KEY-006
    DataKey key = get();
    CountDownLatch answering = new CountDownLatch(1);
    source.encryption =
        (topic, usage) -> {
          await(answering);
          return answer();
        };
    at(50);
    assertThat(get()).isSameAs(key);
    assertThat(get()).isSameAs(key);
    until(() -> source.calls.get() == 2);
    answering.countDown();
    until(() -> renewedPast(99));
    assertThat(get()).isSameAs(key);
    assertThat(source.calls).hasValue(2);
  }

  private boolean renewedPast(long seconds) {
    return keys.expire(TimeUnit.SECONDS.toNanos(seconds)) > TimeUnit.SECONDS.toNanos(1);
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(10, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  @Test
  void rotationWipesTheOldKey() { // CL-ENV-034
    DataKey old = get();
    old.session(0);
    current = TestKeys.bytes();
    at(50);
    get();
    until(() -> old.secret().isDestroyed());
    assertThat(get().kid()).isEqualTo(TestKeys.kid(current));
  }

  @Test
  void endOfTheLeaseWipesTheKey() { // CL-KEY-005
    DataKey key = get();
    key.session(0);
    at(99);
    keys.expire(clock.get());
    assertThat(key.secret().isDestroyed()).isFalse();
    at(100);
    keys.expire(clock.get());
    assertThat(key.secret().isDestroyed()).isTrue();
    assertThatThrownBy(() -> key.session(0)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void timerWipesByItself() {
    DataKey key = get();
    at(100);
    until(() -> key.secret().isDestroyed());
  }

  @Test
  void keyIsNotUsedAfterItsEndEvenIfTheTimerHasNotRun() { // CL-KEY-005 CL-KEY-007
    get();
    answerWith(ErrorCode.KEY_SERVICE_UNAVAILABLE);
    at(100);
    assertThat(failure()).isEqualTo(ErrorCode.KEY_SERVICE_UNAVAILABLE);
  }

  @Test
  void unusedEntryIsNotRenewed() {
    DataKey key = get();
    at(60);
    keys.expire(clock.get());
    at(100);
    keys.expire(clock.get());
    assertThat(key.secret().isDestroyed()).isTrue();
    assertThat(source.calls).hasValue(1);
  }

  @ParameterizedTest
  @EnumSource(
      names = {
        "NOT_AUTHORIZED",
        "TOPIC_FORBIDDEN",
        "TOPIC_UNKNOWN",
        "KEY_DESTROYED",
        "UNAUTHENTICATED"
      })
  void refusedRenewalEndsTheLeaseAtOnce(ErrorCode code) { // CL-KEY-008
    DataKey key = get();
    answerWith(code);
    at(50);
    // Begins the renewal, which may be refused before this call has looked at the lease again.
    var unused = catchThrowable(this::get);
    until(() -> key.secret().isDestroyed());
    assertThat(failure()).isEqualTo(code);
  }

  @ParameterizedTest
  @EnumSource(names = {"KEY_SERVICE_UNAVAILABLE", "KEY_SERVICE_INTERNAL", "KEY_SERVICE_BAD_ANSWER"})
  void renewalThatFailsLeavesTheLeaseToItsEnd(ErrorCode code) { // CL-KEY-006 CL-KEY-007
    DataKey key = get();
    answerWith(code);
    for (int second = 50; second < 100; second++) {
      at(second);
      assertThat(get()).isSameAs(key);
    }
    at(100);
    assertThat(failure()).isEqualTo(code);
  }

  @Test
  void forbidOnRenewalTakesTheKeyAway() {
    DataKey key = get();
    source.encryption =
        (topic, usage) ->
            new KeySource.EncryptionAnswer(
                Mode.FORBID, Optional.empty(), Term.of(clock.get(), 50, 100));
    at(50);
    get();
    until(() -> key.secret().isDestroyed());
    assertThat(keys.get("topic", clock.get()).mode()).isEqualTo(Mode.FORBID);
  }

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
    assertThat(source.closed).isTrue();
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
