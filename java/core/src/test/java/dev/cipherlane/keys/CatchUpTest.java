package dev.cipherlane.keys;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.FakeKeySource;
import dev.cipherlane.TestKeys;
import dev.cipherlane.cipher.KeyId;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** A consumer that reads months of records, with a key for each few of them. */
class CatchUpTest {
  private static final int KEYS = 10_000;
  private static final int KEYS_PER_POLL = 500;
  private static final int MIB = 1 << 20;

  private final Map<KeyId, byte[]> store = new LinkedHashMap<>();
  private final FakeKeySource source = new FakeKeySource();

  CatchUpTest() {
    for (int i = 0; i < KEYS; i++) {
      byte[] key = TestKeys.bytes();
      store.put(TestKeys.kid(key), key);
    }
    Term term = Term.of(0, 3600, 7200);
    source.decryption =
        (topic, kids) -> {
          Map<KeyId, KeySource.KeyAnswer> answers = new HashMap<>();
          kids.forEach(
              kid ->
                  answers.put(
                      kid,
                      new KeySource.KeyGiven(TestKeys.dataKey("scope", store.get(kid)), term)));
          return new KeySource.DecryptionAnswer(false, term, answers);
        };
  }

  @Test
  void tenThousandKeysTakeOneRequestForEachPollAndTenMegabytes() { // CL-KEY-010 CL-KEY-013
    KeyLimits limits = new KeyLimits(Duration.ofSeconds(60), Duration.ofSeconds(1), KEYS);
    List<KeyId> kids = new ArrayList<>(store.keySet());
    long before = usedBytes();
    try (DecryptionKeys keys = new DecryptionKeys(source, () -> 0, limits, kid -> {})) {
      for (int from = 0; from < KEYS; from += KEYS_PER_POLL) {
        List<KeyId> poll = kids.subList(from, from + KEYS_PER_POLL);
        keys.prepare("topic", Set.copyOf(poll), false);
        long deadline = System.nanoTime() + limits.deadline().toNanos();
        poll.forEach(kid -> assertThat(keys.get("topic", kid, deadline).kid()).isEqualTo(kid));
      }
      assertThat(source.calls).hasValue(KEYS / KEYS_PER_POLL);
      assertThat(keys.held()).isEqualTo(KEYS);
      assertThat(usedBytes() - before).isLessThan(10 * MIB);
    }
  }

  private static long usedBytes() {
    long least = Long.MAX_VALUE;
    for (int i = 0; i < 5; i++) {
      System.gc();
      Runtime runtime = Runtime.getRuntime();
      least = Math.min(least, runtime.totalMemory() - runtime.freeMemory());
    }
    return least;
  }
}
