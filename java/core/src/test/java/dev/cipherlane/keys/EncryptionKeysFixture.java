package dev.cipherlane.keys;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.FakeKeySource;
import dev.cipherlane.TestKeys;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;

/**
 * Leases for encrypting, on a clock that the test sets. Each is renewed from 50 s on, and ends at
 * 100 s.
 */
abstract class EncryptionKeysFixture {
  static final KeyLimits LIMITS = new KeyLimits(Duration.ofSeconds(5), Duration.ofSeconds(10), 16);

  final AtomicLong clock = new AtomicLong();
  final FakeKeySource source = new FakeKeySource();
  final EncryptionKeys keys = new EncryptionKeys(source, clock::get, LIMITS);
  byte[] current = TestKeys.bytes();

  EncryptionKeysFixture() {
    source.encryption = (topic, usage) -> answer();
  }

  KeySource.EncryptionAnswer answer() {
    return new KeySource.EncryptionAnswer(
        Mode.ENCRYPT,
        Optional.of(TestKeys.dataKey("scope", current)),
        Term.of(clock.get(), 50, 100));
  }

  @AfterEach
  void close() {
    keys.close();
  }

  DataKey get() {
    return keys.get("topic", clock.get()).key();
  }

  void at(long seconds) {
    clock.set(TimeUnit.SECONDS.toNanos(seconds));
  }

  ErrorCode failure() {
    return catchThrowableOfType(CipherlaneException.class, this::get).code();
  }

  void answerWith(ErrorCode code) {
    source.encryption =
        (topic, usage) -> {
          throw new CipherlaneException(code, "on purpose");
        };
  }

  /** Waits for what another thread does, by looking. */
  static void until(java.util.function.BooleanSupplier condition) {
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
    while (!condition.getAsBoolean()) {
      assertThat(System.nanoTime()).as("waited for 10 s").isLessThan(end);
      Thread.onSpinWait();
    }
  }

  static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(10, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }
}
