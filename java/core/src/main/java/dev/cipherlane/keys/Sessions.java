package dev.cipherlane.keys;

import dev.cipherlane.cipher.EncryptingSession;
import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.cipher.Secret;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * The encrypting sessions that run under one data key, and how much was encrypted. There are a few,
 * chosen by thread, so that the threads of different cores seldom meet on one counter; and not one
 * for each thread, because readers derive a key for each. Thread-safe.
 */
final class Sessions {
  private static final int MAX_STRIPES = 16;
  private static final int STRIPES =
      Math.min(MAX_STRIPES, 2 * Integer.highestOneBit(Runtime.getRuntime().availableProcessors()));

  private final KeyId kid;
  private final Secret secret;
  private final AtomicReferenceArray<EncryptingSession> running =
      new AtomicReferenceArray<>(STRIPES);
  private long endedRecords;
  private long endedBytes;
  private long reportedRecords;
  private long reportedBytes;

  Sessions(KeyId kid, Secret secret) {
    this.kid = kid;
    this.secret = secret;
  }

  /** The session of this thread, which may be over. */
  EncryptingSession session(long now) {
    EncryptingSession known = running.get(stripe());
    return known != null ? known : after(null, now);
  }

  private static int stripe() {
    return (int) Thread.currentThread().getId() & (STRIPES - 1);
  }

  /** Begins the next session, unless another thread did. */
  synchronized EncryptingSession after(EncryptingSession ended, long now) {
    int stripe = stripe();
    if (running.get(stripe) == ended) {
      EncryptingSession next = EncryptingSession.begin(secret, now);
      end(stripe);
      running.set(stripe, next);
    }
    return running.get(stripe);
  }

  private void end(int stripe) {
    EncryptingSession session = running.get(stripe);
    if (session != null) {
      endedRecords += session.records();
      endedBytes += session.bytes();
      session.destroy();
      running.set(stripe, null);
    }
  }

  /** What was encrypted since the last time; empty if nothing. */
  synchronized Optional<Usage> takeUsage() {
    long records = endedRecords - reportedRecords;
    long bytes = endedBytes - reportedBytes;
    for (int i = 0; i < STRIPES; i++) {
      EncryptingSession session = running.get(i);
      if (session != null) {
        records += session.records();
        bytes += session.bytes();
      }
    }
    if (records == 0) {
      return Optional.empty();
    }
    reportedRecords += records;
    reportedBytes += bytes;
    return Optional.of(new Usage(kid, records, bytes));
  }

  /** Puts back what could not be reported. */
  synchronized void giveBack(Usage usage) {
    reportedRecords -= usage.records();
    reportedBytes -= usage.bytes();
  }

  /** Ends all sessions. */
  synchronized void end() {
    for (int i = 0; i < STRIPES; i++) {
      end(i);
    }
  }
}
