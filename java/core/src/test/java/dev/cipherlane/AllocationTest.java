package dev.cipherlane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.management.ThreadMXBean;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keys.Mode;
import dev.cipherlane.keys.Term;
import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * How much garbage a record makes once the code is compiled; exact, on any machine. Among other
 * tests the compiler may leave an object more, so the build runs this one alone.
 */
class AllocationTest {
  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private static final int BESIDE_THE_RESULT = 200;

  private static final long COMPILED_WITHIN_NANOS = 60_000_000_000L;

  /** Kept, so that no allocation is optimized away. */
  @SuppressWarnings("unused")
  private static volatile byte[] result;

  private final FakeKeySource source = new FakeKeySource();

  AllocationTest() {
    byte[] key = TestKeys.bytes();
    Term term = Term.of(LeaseClock.system().now(), 3_600, 3_600);
    source.encryption =
        (topic, usage) ->
            new KeySource.EncryptionAnswer(
                Mode.ENCRYPT, Optional.of(TestKeys.dataKey("scope", key)), term);
    source.decryption =
        (topic, kids) ->
            new KeySource.DecryptionAnswer(
                false,
                term,
                Map.of(kids.get(0), new KeySource.KeyGiven(TestKeys.dataKey("scope", key), term)));
  }

  @ParameterizedTest
  @ValueSource(ints = {100, 1_024, 8_192, 102_400})
  void aRecordAllocatesItsResultAndLittleElse(int size) {
    // The runtime's own cipher makes some 1,000 bytes for each record.
    assumeTrue(Boolean.getBoolean("cipherlane.test.corretto"));
    try (Encryptor encryptor = new Encryptor(source, LeaseClock.system(), Settings.of());
        Decryptor decryptor = new Decryptor(source, LeaseClock.system(), Settings.of())) {
      byte[] envelope = encryptor.encrypt("topic", new byte[size]);
      byte[] value = new byte[size];
      long deadline = decryptor.deadline() + COMPILED_WITHIN_NANOS;
      assertThat(leastGarbage(() -> encryptor.encrypt("topic", value)))
          .isLessThanOrEqualTo(BESIDE_THE_RESULT);
      assertThat(
              leastGarbage(() -> decryptor.decrypt("topic", RecordKey.UNKNOWN, envelope, deadline)))
          .isLessThanOrEqualTo(BESIDE_THE_RESULT);
    }
  }

  /** Bytes for each call beside its result, as soon as that is little enough. */
  private static double leastGarbage(Supplier<byte[]> call) {
    int size = call.get().length;
    int calls = 2_000_000 / (size + 1_000);
    long end = System.nanoTime() + COMPILED_WITHIN_NANOS;
    double least = Double.MAX_VALUE;
    while (least > BESIDE_THE_RESULT && System.nanoTime() < end) {
      long before = THREADS.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < calls; i++) {
        result = call.get();
      }
      long bytes = THREADS.getCurrentThreadAllocatedBytes() - before;
      least = Math.min(least, (double) bytes / calls - size);
    }
    return least;
  }
}
