package dev.cipherlane.keys;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.FakeKeySource;
import dev.cipherlane.TestKeys;
import dev.cipherlane.cipher.KeyId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Leases for decrypting, on a clock that the test sets. */
class DecryptionKeysTest {
  private static final KeyLimits LIMITS =
      new KeyLimits(Duration.ofSeconds(5), Duration.ofSeconds(10), 3000);

  private final AtomicLong clock = new AtomicLong();
  private final FakeKeySource source = new FakeKeySource();
  private final List<Integer> sizes = new CopyOnWriteArrayList<>();
  private final List<KeyId> wiped = new CopyOnWriteArrayList<>();
  private final Map<KeyId, byte[]> store = new HashMap<>();
  private final DecryptionKeys keys = new DecryptionKeys(source, clock::get, LIMITS, wiped::add);

  DecryptionKeysTest() {
    source.decryption = (topic, kids) -> answer(kids);
  }

  private KeySource.DecryptionAnswer answer(List<KeyId> kids) {
    sizes.add(kids.size());
    Map<KeyId, KeySource.KeyAnswer> answers = new HashMap<>();
    kids.forEach(kid -> answers.put(kid, answer(kid)));
    return new KeySource.DecryptionAnswer(true, term(), answers);
  }

  private KeySource.KeyAnswer answer(KeyId kid) {
    byte[] key = store.get(kid);
    return key == null
        ? new KeySource.KeyRefused(new CipherlaneException(ErrorCode.KEY_UNKNOWN, "none"))
        : new KeySource.KeyGiven(TestKeys.dataKey("scope", key), term());
  }

  private Term term() {
    return Term.of(clock.get(), 50, 100);
  }

  @AfterEach
  void close() {
    keys.close();
  }

  private KeyId newKey() {
    byte[] key = TestKeys.bytes();
    KeyId kid = TestKeys.kid(key);
    store.put(kid, key);
    return kid;
  }

  private DataKey get(KeyId kid) {
    return keys.get("topic", kid, deadline());
  }

  private static long deadline() {
    return System.nanoTime() + LIMITS.deadline().toNanos();
  }

  private void at(long seconds) {
    clock.set(TimeUnit.SECONDS.toNanos(seconds));
  }

  @Test
  void oneCallForAllKidsOfABatch() { // CL-KEY-010
    Set<KeyId> kids = new HashSet<>();
    for (int i = 0; i < 100; i++) {
      kids.add(newKey());
    }
    keys.prepare("topic", kids, true);
    kids.forEach(kid -> assertThat(get(kid).kid()).isEqualTo(kid));
    assertThat(keys.plaintextAccepted("topic", deadline())).isTrue();
    assertThat(sizes).containsExactly(100);
  }

  @Test
  void atMostThousandKidsInACall() { // CL-KEY-010
    Set<KeyId> kids = new HashSet<>();
    for (int i = 0; i < 2001; i++) {
      kids.add(newKey());
    }
    keys.prepare("topic", kids, true);
    kids.forEach(kid -> assertThat(get(kid).kid()).isEqualTo(kid));
    assertThat(sizes).containsExactlyInAnyOrder(1000, 1000, 1);
  }

  @Test
  void whatIsKnownIsNotAskedForAgain() {
    KeyId known = newKey();
    get(known);
    KeyId other = newKey();
    keys.prepare("topic", Set.of(known, other), false);
    get(other);
    keys.prepare("topic", Set.of(known, other), false);
    assertThat(sizes).containsExactly(1, 1);
  }

  @Test
  void eachTopicAsksForItself() {
    KeyId kid = newKey();
    get(kid);
    keys.get("other", kid, deadline());
    assertThat(sizes).containsExactly(1, 1);
  }

  @Test
  void errorOfOneKidConcernsNoOther() {
    KeyId good = newKey();
    KeyId bad = TestKeys.kid(TestKeys.bytes());
    keys.prepare("topic", Set.of(good, bad), false);
    assertThat(get(good).kid()).isEqualTo(good);
    assertThatThrownBy(() -> get(bad))
        .hasMessageContaining("kid " + bad)
        .hasMessageContaining("key-unknown");
  }

  @Test
  void answerThatLeavesAKidOutIsAnError() {
    source.decryption = (topic, kids) -> new KeySource.DecryptionAnswer(true, term(), Map.of());
    assertThat(catchThrowableOfType(CipherlaneException.class, () -> get(newKey())).code())
        .isEqualTo(ErrorCode.KEY_SERVICE_BAD_ANSWER);
  }

  @Test
  void failureIsTheAnswerForTheWholeBatchAndForTheBackoff() { // CL-KEY-012
    source.decryption =
        (topic, kids) -> {
          throw new CipherlaneException(ErrorCode.KEY_SERVICE_UNAVAILABLE, "on purpose");
        };
    long deadline = deadline();
    KeyId first = newKey();
    KeyId second = newKey();
    Set<KeyId> kids = Set.of(first, second);
    keys.prepare("topic", kids, true);
    for (KeyId kid : kids) {
      assertThatThrownBy(() -> keys.get("topic", kid, deadline))
          .hasMessageContaining("key-service-unavailable");
      // However long the batch takes on the lease's clock.
      at(clock.get() + 100);
    }
    assertThatThrownBy(() -> keys.plaintextAccepted("topic", deadline))
        .hasMessageContaining("key-service-unavailable");
    assertThat(source.calls).hasValue(1);
  }

  @Test
  void endOfTheLeaseWipesTheKeyAndTells() { // CL-KEY-005
    KeyId kid = newKey();
    DataKey key = get(kid);
    at(100);
    keys.expire(clock.get());
    assertThat(key.secret().isDestroyed()).isTrue();
    assertThat(wiped).containsExactly(kid);
  }

  @Test
  void keyThatWasDestroyedAtTheServiceIsGivenUpAtRenewal() { // CL-KEY-008
    KeyId kid = newKey();
    DataKey key = get(kid);
    store.remove(kid);
    CountDownLatch answering = new CountDownLatch(1);
    source.decryption =
        (topic, kids) -> {
          EncryptionKeysFixture.await(answering);
          return answer(kids);
        };
    at(50);
    assertThat(get(kid)).isSameAs(key);
    answering.countDown();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
    while (!key.secret().isDestroyed()) {
      assertThat(System.nanoTime()).isLessThan(end);
      Thread.onSpinWait();
    }
    assertThatThrownBy(() -> get(kid)).hasMessageContaining("key-unknown");
  }

  @Test
  void renewalKeepsTheKeyAndWhatWasDerived() { // CL-KEY-006
    KeyId kid = newKey();
    DataKey key = get(kid);
    at(60);
    keys.prepare("topic", Set.of(kid), false);
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(10);
    while (keys.expire(TimeUnit.SECONDS.toNanos(60)) <= TimeUnit.SECONDS.toNanos(40)) {
      assertThat(System.nanoTime()).isLessThan(end);
      Thread.onSpinWait();
    }
    at(120);
    assertThat(get(kid)).isSameAs(key);
    assertThat(wiped).isEmpty();
  }

  @Test
  void plaintextPolicyIsLeasedToo() {
    assertThat(keys.plaintextAccepted("topic", deadline())).isTrue();
    assertThat(keys.plaintextAccepted("topic", deadline())).isTrue();
    assertThat(source.calls).hasValue(1);
    source.decryption = (topic, kids) -> new KeySource.DecryptionAnswer(false, term(), Map.of());
    at(100);
    assertThat(keys.plaintextAccepted("topic", deadline())).isFalse();
  }

  @Test
  void cacheIsBounded() { // CL-KEY-013
    List<DataKey> all = new ArrayList<>();
    try (DecryptionKeys small =
        new DecryptionKeys(
            source,
            clock::get,
            new KeyLimits(LIMITS.deadline(), LIMITS.backoff(), 16),
            wiped::add)) {
      for (int i = 0; i < 100; i++) {
        all.add(small.get("topic", newKey(), deadline()));
        assertThat(small.size()).isLessThanOrEqualTo(16);
      }
      assertThat(all.stream().filter(key -> !key.secret().isDestroyed())).hasSize(16);
    }
    assertThat(all).allMatch(key -> key.secret().isDestroyed());
  }
}
