// What Netty's engine over BoringSSL needs beneath Kafka.
package dev.cipherlane.transport.engine;

import io.netty.handler.ssl.ReferenceCountedOpenSslEngine;
import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLEngineResult.Status;
import javax.net.ssl.SSLException;

/**
 * Netty's engine, with direct buffers for Kafka's heap buffers and its native memory freed when
 * Kafka lets go of it. For use by one thread at a time.
 */
final class NativeEngine extends ForwardingEngine {
  static final Cleaner CLEANER = Cleaner.create();
  private static final ByteBuffer NONE = ByteBuffer.allocate(0);
  private static final int HEADER = 5;

  private final Cleaner.Cleanable nativeMemory;
  private boolean closing;
  private byte[] alert = {};

  NativeEngine(ReferenceCountedOpenSslEngine engine) {
    super(engine);
    nativeMemory = CLEANER.register(this, engine::release);
  }

  @Override
  public SSLEngineResult wrap(ByteBuffer[] srcs, int offset, int length, ByteBuffer dst)
      throws SSLException {
    if (alert.length > 0 && closing) {
      return wrapAlert(dst);
    }
    Scratch scratch = Scratch.take();
    try {
      SSLEngineResult result = wrap(srcs, offset, length, dst, scratch);
      if (closing
          && result.getStatus() == Status.CLOSED
          && result.getHandshakeStatus() != HandshakeStatus.NEED_WRAP) {
        nativeMemory.clean();
      }
      return result;
    } finally {
      scratch.giveBack();
    }
  }

  private SSLEngineResult wrap(
      ByteBuffer[] srcs, int offset, int length, ByteBuffer dst, Scratch scratch)
      throws SSLException {
    ByteBuffer out = scratch.out();
    out.limit(Math.min(out.capacity(), dst.remaining()));
    // What a broker reads from its log to send it is direct already.
    SSLEngineResult result =
        length == 1 && srcs[offset].isDirect()
            ? delegate().wrap(srcs[offset], out)
            : wrapCopy(srcs, offset, length, scratch.in(), out);
    dst.put(out.flip());
    return result;
  }

  private SSLEngineResult wrapCopy(
      ByteBuffer[] srcs, int offset, int length, ByteBuffer in, ByteBuffer out)
      throws SSLException {
    in.limit(CoalescingEngine.RECORD);
    for (int i = offset; i < offset + length; i++) {
      int n = Math.min(in.remaining(), srcs[i].remaining());
      in.put(in.position(), srcs[i], srcs[i].position(), n).position(in.position() + n);
    }
    SSLEngineResult result = delegate().wrap(in.flip(), out);
    advance(srcs, offset, length, result.bytesConsumed());
    return result;
  }

  private SSLEngineResult wrapAlert(ByteBuffer dst) {
    dst.put(alert);
    int produced = alert.length;
    alert = new byte[0];
    return new SSLEngineResult(Status.CLOSED, HandshakeStatus.NOT_HANDSHAKING, 0, produced);
  }

  private static void advance(ByteBuffer[] srcs, int offset, int length, int bytes) {
    int left = bytes;
    for (int i = offset; i < offset + length; i++) {
      int n = Math.min(left, srcs[i].remaining());
      srcs[i].position(srcs[i].position() + n);
      left -= n;
    }
  }

  @Override
  public SSLEngineResult unwrap(ByteBuffer src, ByteBuffer[] dsts, int offset, int length)
      throws SSLException {
    Scratch scratch = Scratch.take();
    try {
      return unwrap(src, dsts[offset], scratch);
    } finally {
      scratch.giveBack();
    }
  }

  private SSLEngineResult unwrap(ByteBuffer src, ByteBuffer dst, Scratch scratch)
      throws SSLException {
    ByteBuffer in = scratch.in();
    ByteBuffer out = scratch.out();
    out.limit(Math.min(out.capacity(), dst.remaining()));
    int n = Math.min(recordLength(src), in.capacity());
    in.put(0, src, src.position(), n).limit(n);
    boolean handshaking = delegate().getHandshakeStatus() != HandshakeStatus.NOT_HANDSHAKING;
    SSLEngineResult result = delegate().unwrap(in, out);
    src.position(src.position() + in.position());
    dst.put(out.flip());
    if (!handshaking
        && result.getStatus() == Status.OK
        && result.getHandshakeStatus() == HandshakeStatus.NEED_WRAP) {
      throwDelayed(scratch);
    }
    return result;
  }

  /**
   * After a bad record Netty waits for the alert to be wrapped before it throws. Kafka would go on
   * reading, and wrap when it has something to send: perhaps never.
   */
  private void throwDelayed(Scratch scratch) throws SSLException {
    ByteBuffer out = scratch.out();
    delegate().wrap(NONE, out);
    alert = new byte[out.flip().remaining()];
    out.get(alert);
    delegate().wrap(NONE, out.clear());
  }

  /** The bytes of the first record, or those that are there of it. */
  private static int recordLength(ByteBuffer src) {
    if (src.remaining() < HEADER) {
      return src.remaining();
    }
    return Math.min(HEADER + (src.getShort(src.position() + 3) & 0xffff), src.remaining());
  }

  @Override
  public void closeOutbound() {
    closing = true;
    super.closeOutbound();
  }
}
