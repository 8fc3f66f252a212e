package dev.cipherlane;

import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.Usage;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;

/** A key source that a test writes as two functions, and that counts its calls. */
public class FakeKeySource implements KeySource {
  /** Answers for encryption. */
  public interface Encryption {
    EncryptionAnswer answer(String topic, Optional<Usage> usage);
  }

  /** Answers for decryption. */
  public interface Decryption {
    DecryptionAnswer answer(String topic, List<KeyId> kids);
  }

  public volatile Encryption encryption =
      (topic, usage) -> {
        throw notAsked();
      };
  public volatile Decryption decryption =
      (topic, kids) -> {
        throw notAsked();
      };
  public final AtomicInteger calls = new AtomicInteger();
  public volatile boolean closed;

  private static AssertionError notAsked() {
    return new AssertionError("the key source must not be asked here");
  }

  @Override
  public EncryptionAnswer encryptionKey(String topic, Optional<Usage> usage) {
    calls.incrementAndGet();
    return encryption.answer(topic, usage);
  }

  @Override
  public DecryptionAnswer decryptionKeys(String topic, List<KeyId> kids) {
    calls.incrementAndGet();
    return decryption.answer(topic, kids);
  }

  @Override
  public void close() {
    closed = true;
  }
}
