package dev.cipherlane.keys;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.cipherlane.ErrorCode;
import dev.cipherlane.TestKeys;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Leases for encrypting: renewed, ended, wiped. */
class EncryptionKeysTest extends EncryptionKeysFixture {
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

  private boolean renewedPast(long seconds) {
    return keys.expire(TimeUnit.SECONDS.toNanos(seconds)) > TimeUnit.SECONDS.toNanos(1);
  }
}
