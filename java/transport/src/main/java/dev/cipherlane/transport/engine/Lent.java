package dev.cipherlane.transport.engine;

import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.Supplier;

/**
 * Buffers that are lent for a moment and not one thread's or connection's own: a process of many of
 * them then has as many as are in use at the same time, which stay in the processor's cache. May be
 * used by any thread.
 *
 * @param <T> what is lent
 */
final class Lent<T> {
  private final AtomicReferenceArray<T> free =
      new AtomicReferenceArray<>(2 * Runtime.getRuntime().availableProcessors());
  private final Supplier<T> fresh;

  /** Takes what makes a new one. */
  Lent(Supplier<T> fresh) {
    this.fresh = fresh;
  }

  /** The one that was given back last, as a rule, or a new one. */
  T take() {
    for (int i = 0; i < free.length(); i++) {
      T taken = free.get(i) == null ? null : free.getAndSet(i, null);
      if (taken != null) {
        return taken;
      }
    }
    return fresh.get();
  }

  /** Must not be used any more; without a place for it, it is left to the garbage collector. */
  void giveBack(T taken) {
    for (int i = 0; i < free.length(); i++) {
      if (free.compareAndSet(i, null, taken)) {
        return;
      }
    }
  }
}
