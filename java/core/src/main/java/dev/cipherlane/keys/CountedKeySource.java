package dev.cipherlane.keys;

import dev.cipherlane.cipher.KeyId;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;

/** Counts the calls to another source. Thread-safe. */
public final class CountedKeySource implements KeySource {
  private final KeySource source;
  private final LongAdder requests = new LongAdder();
  private final LongAdder failures = new LongAdder();

  /**
   * Makes one.
   *
   * @param source whom to ask; closed with this one
   */
  public CountedKeySource(KeySource source) {
    this.source = source;
  }

  @Override
  public EncryptionAnswer encryptionKey(String topic, Optional<Usage> usage) {
    return counted(() -> source.encryptionKey(topic, usage));
  }

  @Override
  public DecryptionAnswer decryptionKeys(String topic, List<KeyId> kids) {
    return counted(() -> source.decryptionKeys(topic, kids));
  }

  private <T> T counted(Supplier<T> call) {
    requests.increment();
    try {
      return call.get();
    } catch (RuntimeException | Error e) {
      failures.increment();
      throw e;
    }
  }

  /**
   * Counts calls.
   *
   * @return so far
   */
  public long requests() {
    return requests.sum();
  }

  /**
   * Counts calls that ended in an error.
   *
   * @return so far
   */
  public long failures() {
    return failures.sum();
  }

  @Override
  public void close() {
    source.close();
  }
}
