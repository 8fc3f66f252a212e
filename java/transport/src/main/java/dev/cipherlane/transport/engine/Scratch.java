package dev.cipherlane.transport.engine;

import java.nio.ByteBuffer;

/**
 * A pair of direct buffers for one call of a native engine, of 32 KiB each. May be taken and given
 * back by any thread.
 */
final class Scratch {
  private static final int BYTES = 32 * 1024;
  private static final Lent<Scratch> LENT = new Lent<>(Scratch::new);

  private final ByteBuffer in = ByteBuffer.allocateDirect(BYTES);
  private final ByteBuffer out = ByteBuffer.allocateDirect(BYTES);

  private Scratch() {}

  /** The one that was given back last, as a rule, or a new one. */
  static Scratch take() {
    return LENT.take();
  }

  /** Gives it back. */
  void giveBack() {
    LENT.giveBack(this);
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
