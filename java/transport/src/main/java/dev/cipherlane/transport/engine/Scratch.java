package dev.cipherlane.transport.engine;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * A pair of direct buffers for one call of a native engine, of 32 KiB each. They are lent, not one
 * thread's own: a process of many threads then has as many as calls run at the same time, which
 * stay in the processor's cache. May be taken and given back by any thread.
 */
final class Scratch {
  private static final int BYTES = 32 * 1024;
  private static final AtomicReferenceArray<Scratch> FREE =
      new AtomicReferenceArray<>(2 * Runtime.getRuntime().availableProcessors());

  private final ByteBuffer in = ByteBuffer.allocateDirect(BYTES);
  private final ByteBuffer out = ByteBuffer.allocateDirect(BYTES);

  private Scratch() {}

  /** The one that was given back last, as a rule, or a new one. */
  static Scratch take() {
    for (int i = 0; i < FREE.length(); i++) {
      Scratch free = FREE.get(i) == null ? null : FREE.getAndSet(i, null);
      if (free != null) {
        return free;
      }
    }
    return new Scratch();
  }

  /** Gives it back; without a place for it, it is left to the garbage collector. */
  void giveBack() {
    for (int i = 0; i < FREE.length(); i++) {
      if (FREE.compareAndSet(i, null, this)) {
        return;
      }
    }
  }

  /** Empty, with all its room. */
  ByteBuffer in() {
    return in.clear();
  }

  /** Empty, with all its room. */
  ByteBuffer out() {
    return out.clear();
  }
}
