package dev.cipherlane.keys;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.cipher.KeyId;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;

/**
 * The data keys that records are read with, by topic and key id, and whether plaintext is accepted,
 * by topic: with their leases, renewed ahead of time and off the calling thread, wiped when they
 * end. Thread-safe.
 */
public final class DecryptionKeys implements AutoCloseable {
  private record Id(String topic, KeyId kid) {}

  private final KeySource source;
  private final LeaseClock clock;
  private final KeyLimits limits;
  private final Consumer<KeyId> wiped;
  private final Slots<Id, DecryptionGrant> keys;
  private final Slots<String, PlaintextGrant> plaintexts;
  private final Workers workers;

  /**
   * Makes an empty cache.
   *
   * @param source whom to ask; not closed with the cache
   * @param clock what leases are measured on
   * @param limits its limits
   * @param wiped told each time a key was wiped, so that what was derived from it goes too
   */
  public DecryptionKeys(
      KeySource source, LeaseClock clock, KeyLimits limits, Consumer<KeyId> wiped) {
    this.source = source;
    this.clock = clock;
    this.limits = limits;
    this.wiped = wiped;
    this.keys = new Slots<>(limits.max());
    this.plaintexts = new Slots<>(limits.max());
    this.workers = new Workers("decryption-keys", this::expire, clock);
  }

  /**
   * Asks for all that is missing or due for renewal, in as few calls as the limits allow
   * [CL-KEY-010], and does not wait.
   *
   * @param topic a valid topic name
   * @param kids the key ids of some records
   * @param plaintext whether there is plaintext among these records
   */
  public void prepare(String topic, Set<KeyId> kids, boolean plaintext) {
    long now = clock.now();
    long began = System.nanoTime();
    List<Slot<DecryptionGrant>> missing = new ArrayList<>();
    for (KeyId kid : kids) {
      Slot<DecryptionGrant> slot = keySlot(topic, kid, now);
      if (slot.claim(now, began)) {
        missing.add(slot);
      }
    }
    Slot<PlaintextGrant> policy = plaintext ? plaintextSlot(topic, now) : null;
    if (policy != null && !policy.claim(now, began)) {
      policy = null;
    }
    submit(topic, missing, policy);
  }

  private Slot<DecryptionGrant> keySlot(String topic, KeyId kid, long now) {
    Id id = new Id(topic, kid);
    Slot<DecryptionGrant> known = keys.find(id);
    // What makes a slot is itself made only where it is needed: every record comes by here.
    return known != null ? known : keys.slot(id, now, made -> new Slot<>(topic, kid, made));
  }

  private Slot<PlaintextGrant> plaintextSlot(String topic, long now) {
    return plaintexts.slot(topic, now, made -> new Slot<>(topic, null, made));
  }

  /** In parts of 1,000; the first asks about plaintext as well. */
  private void submit(
      String topic, List<Slot<DecryptionGrant>> missing, Slot<PlaintextGrant> policy) {
    Slot<PlaintextGrant> asksPolicy = policy;
    int from = 0;
    while (from < missing.size() || asksPolicy != null) {
      int to = Math.min(missing.size(), from + KeySource.MAX_KIDS);
      submit(new Request(topic, List.copyOf(missing.subList(from, to)), asksPolicy));
      from = to;
      asksPolicy = null;
    }
  }

  private void submit(Request request) {
    try {
      workers.execute(request);
    } catch (RejectedExecutionException e) {
      request.fail(new CipherlaneException(ErrorCode.CLOSED, "the decryptor was closed", e));
    }
  }

  /**
   * Gives a data key. Asks the key service, and waits, only if nothing valid is held.
   *
   * @param topic the topic that the record was read from
   * @param kid the key id
   * @param deadline until when to wait, in nanoseconds of {@link System#nanoTime}
   * @return the key, which may be wiped at any moment, when its lease ends
   * @throws CipherlaneException the key service's refusal, or that there is no answer
   */
  public DataKey get(String topic, KeyId kid, long deadline) {
    long now = clock.now();
    Slot<DecryptionGrant> slot = keySlot(topic, kid, now);
    DecryptionGrant grant = slot.fresh(now);
    if (grant == null) {
      if (slot.claim(now, began(deadline))) {
        submit(topic, List.of(slot), null);
      }
      grant = slot.await(now, deadline);
    }
    return grant.key();
  }

  /**
   * Tells whether plaintext is accepted. Asks the key service, and waits, only if nothing valid is
   * held.
   *
   * @param topic the topic that the record was read from
   * @param deadline until when to wait, in nanoseconds of {@link System#nanoTime}
   * @return what the policy says
   * @throws CipherlaneException the key service's refusal, or that there is no answer
   */
  public boolean plaintextAccepted(String topic, long deadline) {
    long now = clock.now();
    Slot<PlaintextGrant> slot = plaintextSlot(topic, now);
    PlaintextGrant grant = slot.fresh(now);
    if (grant == null) {
      if (slot.claim(now, began(deadline))) {
        submit(topic, List.of(), slot);
      }
      grant = slot.await(now, deadline);
    }
    return grant.accepted();
  }

  /**
   * Makes a reader, which remembers the key that it used last: records come in runs under one key,
   * and then need no search.
   *
   * @return one for each consumer; thread-safe, but threads that share one disturb each other
   */
  public Reader reader() {
    return new Reader();
  }

  /** One reader's way to the data keys. */
  public final class Reader {
    private volatile Slot<DecryptionGrant> last;

    private Reader() {}

    /**
     * Gives a data key, as {@link DecryptionKeys#get} does.
     *
     * @param topic the topic that the record was read from
     * @param in has the key id
     * @param offset where it begins
     * @param now time of the lease clock
     * @param deadline until when to wait, in nanoseconds of {@link System#nanoTime}
     * @return the key, which may be wiped at any moment, when its lease ends
     * @throws CipherlaneException the key service's refusal, or that there is no answer
     */
    public DataKey get(String topic, byte[] in, int offset, long now, long deadline) {
      Slot<DecryptionGrant> slot = last;
      if (slot == null || !slot.kid().isAt(in, offset) || !slot.topic().equals(topic)) {
        slot = keySlot(topic, KeyId.read(in, offset), now);
        last = slot;
      }
      DecryptionGrant grant = slot.fresh(now);
      if (grant != null) {
        return grant.key();
      }
      last = null; // It may have left the cache.
      return DecryptionKeys.this.get(topic, slot.kid(), deadline);
    }
  }

  private long began(long deadline) {
    return deadline - limits.deadline().toNanos();
  }

  /** One call to the key service, for some slots that wait for it. */
  private final class Request implements Runnable {
    private final String topic;
    private final List<Slot<DecryptionGrant>> missing;
    private final Slot<PlaintextGrant> policy;

    Request(String topic, List<Slot<DecryptionGrant>> missing, Slot<PlaintextGrant> policy) {
      this.topic = topic;
      this.missing = missing;
      this.policy = policy;
    }

    @Override
    public void run() {
      try {
        deliver(source.decryptionKeys(topic, missing.stream().map(Slot::kid).toList()));
      } catch (CipherlaneException e) {
        fail(e);
      } catch (RuntimeException | Error e) {
        fail(new CipherlaneException(ErrorCode.INTERNAL, "the request failed", e));
      }
    }

    private void deliver(KeySource.DecryptionAnswer answer) {
      missing.forEach(slot -> deliver(slot, answer.keys()));
      if (policy != null) {
        policy.granted(new PlaintextGrant(answer.plaintextAccepted()), answer.term());
      }
    }

    private void deliver(Slot<DecryptionGrant> slot, Map<KeyId, KeySource.KeyAnswer> answers) {
      KeySource.KeyAnswer answer = answers.get(slot.kid());
      if (answer instanceof KeySource.KeyGiven given) {
        slot.granted(new DecryptionGrant(given.key(), wiped), given.term());
      } else if (answer instanceof KeySource.KeyRefused refused) {
        failOne(slot, refused.error());
      } else {
        failOne(
            slot,
            new CipherlaneException(
                ErrorCode.KEY_SERVICE_BAD_ANSWER, "the answer leaves the kid out"));
      }
    }

    void fail(CipherlaneException error) {
      missing.forEach(slot -> failOne(slot, error));
      if (policy != null) {
        failOne(policy, error);
      }
    }

    private void failOne(Slot<?> slot, CipherlaneException error) {
      slot.failed(error, clock.now(), limits.backoff().toNanos());
    }
  }

  /**
   * Wipes what has ended; a timer does it as well.
   *
   * @param now time of the lease clock
   * @return nanoseconds until the next lease ends; {@link Long#MAX_VALUE} if there is none
   */
  public long expire(long now) {
    return Math.min(keys.expire(now), plaintexts.expire(now));
  }

  int size() {
    return keys.size();
  }

  /**
   * Counts data keys.
   *
   * @return held now
   */
  public long held() {
    return keys.count(grant -> true);
  }

  /** Wipes all keys; who waits is told {@code closed}. May be called more than once. */
  @Override
  public void close() {
    // First those who wait, so that they hear of the close; then what came in meanwhile.
    closeSlots();
    workers.close();
    closeSlots();
  }

  private void closeSlots() {
    keys.close();
    plaintexts.close();
  }
}
