package dev.cipherlane.keys;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.TopicName;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * What may be encrypted, by topic: the data keys with their leases, renewed ahead of time and off
 * the calling thread, wiped when they end. Thread-safe.
 */
public final class EncryptionKeys implements AutoCloseable {
  private static final long REPORT_MILLIS = 1000;

  private final KeySource source;
  private final LeaseClock clock;
  private final KeyLimits limits;
  private final Slots<String, EncryptionGrant> slots;
  private final Workers workers;

  /**
   * Makes an empty cache.
   *
   * @param source whom to ask; not closed with the cache
   * @param clock what leases are measured on
   * @param limits its limits
   */
  public EncryptionKeys(KeySource source, LeaseClock clock, KeyLimits limits) {
    this.source = source;
    this.clock = clock;
    this.limits = limits;
    this.slots = new Slots<>(limits.max());
    this.workers = new Workers("encryption-keys", this::expire, clock);
  }

  /**
   * Gives what may be done with a topic now. Asks the key service, and waits, only if nothing valid
   * is held.
   *
   * @param topic a valid topic name
   * @param now time of the lease clock
   * @return the grant; its key may be wiped at any moment, when its lease ends
   * @throws CipherlaneException the key service's refusal, or that there is no answer
   */
  public EncryptionGrant get(String topic, long now) {
    Slot<EncryptionGrant> known = slots.find(topic);
    Slot<EncryptionGrant> slot =
        known != null ? known : slots.slot(topic, now, made -> newSlot(topic, made));
    EncryptionGrant fresh = slot.fresh(now);
    return fresh != null ? fresh : renewed(topic, slot, now);
  }

  private static Slot<EncryptionGrant> newSlot(String topic, long now) {
    // Here, and not for every record.
    TopicName.check(topic);
    return new Slot<>(topic, null, now);
  }

  private EncryptionGrant renewed(String topic, Slot<EncryptionGrant> slot, long now) {
    long began = System.nanoTime();
    if (slot.claim(now, began)) {
      submit(topic, slot);
    }
    EncryptionGrant usable = slot.usable(now);
    return usable != null ? usable : slot.await(now, began + limits.deadline().toNanos());
  }

  private void submit(String topic, Slot<EncryptionGrant> slot) {
    try {
      workers.execute(() -> ask(topic, slot));
    } catch (RejectedExecutionException e) {
      fail(slot, new CipherlaneException(ErrorCode.CLOSED, "the encryptor was closed", e));
    }
  }

  private void ask(String topic, Slot<EncryptionGrant> slot) {
    Optional<DataKey> last = slot.last().map(EncryptionGrant::key);
    Optional<Usage> usage = last.flatMap(DataKey::takeUsage);
    try {
      KeySource.EncryptionAnswer answer = source.encryptionKey(topic, usage);
      slot.granted(new EncryptionGrant(answer.mode(), answer.key()), answer.term());
    } catch (CipherlaneException e) {
      // What did not arrive is reported the next time; what was refused never will be taken.
      if (e.code().retriable()) {
        usage.ifPresent(unreported -> last.orElseThrow().giveBack(unreported));
      }
      fail(slot, e);
    } catch (RuntimeException | Error e) {
      fail(slot, new CipherlaneException(ErrorCode.INTERNAL, "the request failed", e));
    }
  }

  private void fail(Slot<EncryptionGrant> slot, CipherlaneException error) {
    slot.failed(error, clock.now(), limits.backoff().toNanos());
  }

  /**
   * Wipes what has ended; a timer does it as well.
   *
   * @param now time of the lease clock
   * @return nanoseconds until the next lease ends; {@link Long#MAX_VALUE} if there is none
   */
  public long expire(long now) {
    return slots.expire(now);
  }

  int size() {
    return slots.size();
  }

  /**
   * Counts data keys.
   *
   * @return held now
   */
  public long held() {
    return slots.count(grant -> grant.mode() == Mode.ENCRYPT);
  }

  /**
   * Wipes all keys; who waits is told {@code closed}. Then reports what was encrypted since the
   * last report, waiting a second at most [CL-KEY-017]. May be called more than once.
   */
  @Override
  public void close() {
    // First those who wait, so that they hear of the close; then what came in meanwhile.
    List<Slot<EncryptionGrant>> closed = slots.close();
    report(closed);
    workers.close();
    slots.close();
  }

  private void report(List<Slot<EncryptionGrant>> closed) {
    CompletableFuture<?>[] reports =
        closed.stream().flatMap(slot -> report(slot).stream()).toArray(CompletableFuture<?>[]::new);
    try {
      CompletableFuture.allOf(reports).get(REPORT_MILLIS, TimeUnit.MILLISECONDS);
    } catch (ExecutionException | TimeoutException e) {
      // That this fails is not an error: limits of a key count what they are told.
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Starts the report of one topic, if there is anything to report. */
  private Optional<CompletableFuture<Void>> report(Slot<EncryptionGrant> slot) {
    return slot.last()
        .map(EncryptionGrant::key)
        .flatMap(DataKey::takeUsage)
        .map(usage -> CompletableFuture.runAsync(() -> report(slot.topic(), usage), workers));
  }

  private void report(String topic, Usage usage) {
    // The answer brings a key, which nobody needs any more.
    source.encryptionKey(topic, Optional.of(usage)).key().ifPresent(DataKey::destroy);
  }
}
