package dev.cipherlane.cipher;

import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import javax.crypto.SecretKey;

/**
 * Encrypts up to 2^32 - 1 records under one data key within 15 minutes: derives once, then one
 * AES-256-GCM call for each record, without a lock. Thread-safe.
 */
public final class EncryptingSession {
  /** Random bytes at the start of each nonce, drawn once [CL-ENV-030]. The counter follows. */
  public static final int PREFIX_SIZE = 20;

  /** Nanoseconds that a session lives [CL-ENV-033]. */
  public static final long LIFE_NANOS = TimeUnit.MINUTES.toNanos(15);

  /** Records that a session takes [CL-ENV-032]: counters 0 to FFFFFFFE. */
  public static final long MAX_RECORDS = 0xFFFF_FFFFL;

  private static final SecureRandom RANDOM = systemRandom();

  private final Secret derived;
  private final byte[] prefix;
  private final AtomicLong counter;
  private final AtomicLong bytes = new AtomicLong();
  private final long endsAt;

  private EncryptingSession(SecretKey dataKey, byte[] prefix, long firstCounter, long now) {
    this.derived = Xaes.derive(dataKey, prefix, 0);
    this.prefix = prefix;
    this.counter = new AtomicLong(firstCounter);
    this.endsAt = now + LIFE_NANOS;
  }

  /**
   * Begins a session with random bytes of its own.
   *
   * @param dataKey the data key
   * @param now the time, in nanoseconds of the clock that {@link #tryEncrypt} is told
   * @return the session
   * @throws IllegalStateException if the data key was destroyed
   */
  public static EncryptingSession begin(SecretKey dataKey, long now) {
    byte[] prefix = new byte[PREFIX_SIZE];
    RANDOM.nextBytes(prefix);
    return new EncryptingSession(dataKey, prefix, 0, now);
  }

  /** For tests and vectors only: with chosen bytes nonces may repeat. */
  static EncryptingSession at(SecretKey dataKey, byte[] prefix, long firstCounter, long now) {
    return new EncryptingSession(dataKey, prefix.clone(), firstCounter, now);
  }

  /**
   * The operating system's source, not a generator seeded from it: a cloned machine must differ.
   */
  private static SecureRandom systemRandom() {
    for (String name : List.of("NativePRNGNonBlocking", "Windows-PRNG")) {
      try {
        return SecureRandom.getInstance(name);
      } catch (NoSuchAlgorithmException e) {
        // The other system's name, then.
      }
    }
    throw new IllegalStateException("no random source of the operating system");
  }

  /**
   * Encrypts one record, unless the session is over.
   *
   * @param aad the additional data
   * @param plaintext what to encrypt
   * @param out receives nonce, ciphertext and tag: 24 bytes, those of the plaintext, 16
   * @param offset where the nonce begins; {@code out} ends where the tag does
   * @param now the time, in nanoseconds
   * @return false, with {@code out} unchanged, if the session is over and the next one has to begin
   * @throws IllegalStateException if the session was destroyed
   */
  public boolean tryEncrypt(byte[] aad, byte[] plaintext, byte[] out, int offset, long now) {
    if (now - endsAt >= 0) {
      return false;
    }
    // Each caller gets another number, so no nonce comes twice [CL-ENV-031]. A long never wraps.
    long count = counter.getAndIncrement();
    if (count >= MAX_RECORDS) {
      return false;
    }
    System.arraycopy(prefix, 0, out, offset, PREFIX_SIZE);
    putInt(out, offset + PREFIX_SIZE, (int) count);
    Gcm.encrypt(derived, aad, plaintext, out, offset + Xaes.DERIVING_SIZE);
    return true;
  }

  private static void putInt(byte[] out, int offset, int value) {
    out[offset] = (byte) (value >>> 24);
    out[offset + 1] = (byte) (value >>> 16);
    out[offset + 2] = (byte) (value >>> 8);
    out[offset + 3] = (byte) value;
  }

  /**
   * Counts the records.
   *
   * @return how many were encrypted so far
   */
  public long records() {
    return Math.min(counter.get(), MAX_RECORDS);
  }

  /**
   * Counts bytes as encrypted, for the report: of the value as the application gave it, which may
   * have been compressed since [CL-ENV-046].
   *
   * @param size how many
   */
  public void addBytes(int size) {
    bytes.addAndGet(size);
  }

  /**
   * Counts the bytes of plaintext.
   *
   * @return how many were added so far
   */
  public long bytes() {
    return bytes.get();
  }

  /** Wipes the derived key: nothing is encrypted any more. */
  public void destroy() {
    derived.destroy();
  }
}
