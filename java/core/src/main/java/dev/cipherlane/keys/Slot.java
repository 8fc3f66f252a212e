package dev.cipherlane.keys;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.cipher.KeyId;
import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Predicate;

/**
 * One entry of a cache: the lease that there is, the request that is under way, the error of the
 * last one. It sees to it that there is one request at a time [CL-KEY-009], that a failed one is
 * not repeated at once [CL-KEY-012], and that what has ended is wiped. Thread-safe.
 *
 * @param <G> the type of grant
 */
final class Slot<G extends Grant<G>> {
  /** Errors that end a lease at once when a renewal meets them [CL-KEY-008]. */
  private static final Set<ErrorCode> REFUSALS =
      EnumSet.of(
          ErrorCode.TOPIC_UNKNOWN,
          ErrorCode.TOPIC_FORBIDDEN,
          ErrorCode.NOT_AUTHORIZED,
          ErrorCode.SCOPE_MISMATCH,
          ErrorCode.KEY_UNKNOWN,
          ErrorCode.KEY_DESTROYED,
          ErrorCode.UNAUTHENTICATED);

  /** How exact the order of use is that the cache evicts by: finer would cost every record. */
  private static final long TOUCH_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  private final String topic;
  private final KeyId kid;
  private volatile Lease<G> lease;
  private G last;
  private CompletableFuture<Lease<G>> request;
  private volatile CipherlaneException failure;
  private volatile long failedAt;
  private volatile long retryAt;
  private volatile boolean waiting;
  private boolean closed;
  private volatile long usedAt;

  Slot(String topic, KeyId kid, long now) {
    this.topic = topic;
    this.kid = kid;
    this.usedAt = now;
    this.retryAt = now;
  }

  String topic() {
    return topic;
  }

  KeyId kid() {
    return kid;
  }

  boolean holds(Predicate<G> kind) {
    Lease<G> current = lease;
    return current != null && kind.test(current.grant());
  }

  long usedAt() {
    return usedAt;
  }

  /** The way of nearly every record: no lock, no write. Null if there is more to do. */
  G fresh(long now) {
    if (now - usedAt > TOUCH_NANOS) {
      usedAt = now;
    }
    Lease<G> current = lease;
    return current != null && current.fresh(now) ? current.grant() : null;
  }

  /** The grant, also when it is due for renewal; null if there is none or it has ended. */
  G usable(long now) {
    Lease<G> current = lease;
    return current != null && current.usable(now) ? current.grant() : null;
  }

  /**
   * The grant that there was last, wiped or not: what was encrypted under it is still to be
   * reported.
   */
  synchronized Optional<G> last() {
    return Optional.ofNullable(last);
  }

  /**
   * Takes on the duty to make a request, which ends in {@link #granted} or {@link #failed}.
   *
   * @param now time of the lease clock
   * @param began when the caller's own call began, in nanoseconds of {@link System#nanoTime}: an
   *     error that came since then is its answer, however long the other records of its batch took
   */
  boolean claim(long now, long began) {
    // Looked at without the lock first: while the key service is down, every record comes by here.
    return !waiting
        && now - retryAt >= 0
        && (failure == null || failedAt - began < 0)
        && fresh(now) == null
        && claimLocked();
  }

  private synchronized boolean claimLocked() {
    if (closed || request != null) {
      return false;
    }
    waiting = true;
    request = new CompletableFuture<>();
    return true;
  }

  /** Ends a request well. */
  void granted(G grant, Term term) {
    CompletableFuture<Lease<G>> done;
    Lease<G> next;
    synchronized (this) {
      if (closed || request == null) {
        grant.wipe();
        return;
      }
      Lease<G> before = lease;
      next = new Lease<>(before == null ? grant : before.grant().renewedBy(grant), term);
      lease = next;
      // Not sooner: who still finds the old lease has to find its key as well.
      if (before != null && before.grant() != next.grant()) {
        before.grant().wipe();
      }
      last = next.grant();
      failure = null;
      done = finish();
    }
    done.complete(next);
  }

  /**
   * Ends a request badly.
   *
   * @param error what happened
   * @param now time of the lease clock
   * @param backoff least time until the next request, in nanoseconds, give or take 20 %
   */
  void failed(CipherlaneException error, long now, long backoff) {
    CompletableFuture<Lease<G>> done;
    synchronized (this) {
      if (closed || request == null) {
        return;
      }
      failedAt = System.nanoTime();
      failure = error;
      retryAt = now + Math.round(backoff * ThreadLocalRandom.current().nextDouble(0.8, 1.2));
      if (REFUSALS.contains(error.code())) {
        end();
      }
      done = finish();
    }
    done.completeExceptionally(error);
  }

  private CompletableFuture<Lease<G>> finish() {
    CompletableFuture<Lease<G>> done = request;
    request = null;
    waiting = false;
    return done;
  }

  private void end() {
    if (lease != null) {
      Lease<G> ended = lease;
      lease = null;
      ended.grant().wipe();
    }
  }

  /**
   * Wipes the grant if its time is over. Gives the time left, in nanoseconds, or the most there is.
   */
  synchronized long expire(long now) {
    if (lease != null && !lease.usable(now)) {
      end();
    }
    return lease == null ? Long.MAX_VALUE : lease.term().expiresAt() - now;
  }

  /** Wipes the grant, unless a request is under way. Says whether the slot may be thrown away. */
  synchronized boolean evict() {
    if (request != null) {
      return false;
    }
    closed = true;
    end();
    return true;
  }

  /** Wipes the grant for good and answers all who wait. */
  void close() {
    CompletableFuture<Lease<G>> done;
    synchronized (this) {
      closed = true;
      failure = new CipherlaneException(ErrorCode.CLOSED, "closed while in use");
      end();
      done = finish();
    }
    if (done != null) {
      done.completeExceptionally(failure);
    }
  }

  /**
   * Gives the grant, waiting for the request that is under way.
   *
   * @param now time of the lease clock
   * @param deadline until when to wait, in nanoseconds of {@link System#nanoTime}
   * @throws CipherlaneException the error of the last attempt, or {@code lease-expired} if there
   *     was none [CL-KEY-007]; {@code key-service-unavailable} after the deadline [CL-KEY-011]
   */
  G await(long now, long deadline) {
    CompletableFuture<Lease<G>> underWay;
    synchronized (this) {
      G usable = usable(now);
      if (usable != null) {
        return usable;
      }
      if (request == null) {
        throw failure == null ? leaseExpired() : again(failure);
      }
      underWay = request;
    }
    return await(underWay, deadline);
  }

  private G await(CompletableFuture<Lease<G>> underWay, long deadline) {
    try {
      return underWay.get(deadline - System.nanoTime(), TimeUnit.NANOSECONDS).grant();
    } catch (ExecutionException e) {
      throw again((CipherlaneException) e.getCause());
    } catch (TimeoutException e) {
      throw unavailable("no answer within cipherlane.keys.deadline.ms", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw unavailable("interrupted while waiting for the key service", e);
    }
  }

  /** The same error, with the topic and the stack of this caller. */
  private CipherlaneException again(CipherlaneException error) {
    return new CipherlaneException(error.code(), topic, kid, error.detail(), error);
  }

  private CipherlaneException leaseExpired() {
    return new CipherlaneException(
        ErrorCode.LEASE_EXPIRED, topic, kid, "the lease ended while in use", null);
  }

  private CipherlaneException unavailable(String detail, Exception cause) {
    return new CipherlaneException(ErrorCode.KEY_SERVICE_UNAVAILABLE, topic, kid, detail, cause);
  }
}
