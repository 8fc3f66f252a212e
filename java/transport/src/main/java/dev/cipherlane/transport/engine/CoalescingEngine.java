// Kafka's contract with an engine: sizes of buffers, many records at once, frames kept together.
package dev.cipherlane.transport.engine;

import static javax.net.ssl.SSLEngineResult.HandshakeStatus.NEED_UNWRAP;
import static javax.net.ssl.SSLEngineResult.HandshakeStatus.NOT_HANDSHAKING;

import java.nio.ByteBuffer;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLEngineResult.Status;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSession;

/**
 * Makes as many TLS records of a buffer as there is room for, and takes as many apart, where the
 * engine beneath makes and takes one at a time. Kafka calls the system once for each wrap and once
 * for each filling of its read buffer, so fewer and fuller ones are what saves CPU time.
 *
 * <p>It also keeps back the parts of an unfinished frame, which Kafka wraps and sends one by one (a
 * request's header, a batch of records, the few bytes that follow it), until the next part comes or
 * there is more than a batch of Kafka's default size. For use by one thread at a time.
 */
final class CoalescingEngine extends ForwardingEngine {
  static final int RECORD = 16 * 1024;

  /** What is left of a longer part after its full records is kept up to here. */
  static final int REST_LIMIT = 4 * 1024;

  /** Up to here parts of a frame are kept: copying so much costs less than a call of the system. */
  static final int KEPT_LIMIT = RECORD + REST_LIMIT;

  /** The buffer for writing grows to this many TLS records: what a socket takes at once. */
  static final int WRITE_LIMIT = 8;

  /**
   * Those for reading grow to this many: what many connections hold must stay in the processor's
   * cache from the socket to the application, which is worth more than fewer calls of the system.
   */
  static final int READ_LIMIT = 2;

  private static final ByteBuffer NONE = ByteBuffer.allocate(0);
  private static final Lent<ByteBuffer> HEAP = new Lent<>(() -> ByteBuffer.allocate(KEPT_LIMIT));
  private static final Lent<ByteBuffer> DIRECT =
      new Lent<>(() -> ByteBuffer.allocateDirect(KEPT_LIMIT));

  private final Lent<ByteBuffer> lent;
  private final int packet;
  private final BufferSizes sizes;
  private final SizedSession session;
  private final FrameTracker frames = new FrameTracker();
  private final FrameTracker ahead = new FrameTracker();
  private ByteBuffer kept = NONE;
  private boolean begun;
  private boolean established;
  private SSLException delayed;

  CoalescingEngine(SSLEngine delegate) {
    super(delegate);
    lent = delegate instanceof NativeEngine ? DIRECT : HEAP;
    SSLSession first = delegate.getSession();
    packet = first.getPacketBufferSize();
    sizes = new BufferSizes(packet, first.getApplicationBufferSize(), READ_LIMIT, WRITE_LIMIT);
    session = new SizedSession(delegate::getSession, this::packetSize, this::applicationSize);
  }

  private int packetSize() {
    return Math.max(sizes.packet(), delegate().getSession().getPacketBufferSize());
  }

  private int applicationSize() {
    return Math.max(sizes.application(), delegate().getSession().getApplicationBufferSize());
  }

  @Override
  public SSLSession getSession() {
    return session;
  }

  @Override
  public void beginHandshake() throws SSLException {
    begun = true;
    super.beginHandshake();
  }

  @Override
  public SSLEngineResult wrap(ByteBuffer[] srcs, int offset, int length, ByteBuffer dst)
      throws SSLException {
    sizes.begin();
    ByteBuffer src = firstWithBytes(srcs, offset, length);
    if (!src.hasRemaining() || !established()) {
      return wrapHandshake(src, dst);
    }
    if (roomIsShort(src, dst)) {
      return result(Status.BUFFER_OVERFLOW, NOT_HANDSHAKING, 0, 0);
    }
    int from = src.position();
    try {
      return wrapRecords(src, dst);
    } finally {
      frames.passed(src, from, src.position());
    }
  }

  /** Kafka has one. */
  private static ByteBuffer firstWithBytes(ByteBuffer[] srcs, int offset, int length) {
    for (int i = offset; i < offset + length; i++) {
      if (srcs[i].hasRemaining()) {
        return srcs[i];
      }
    }
    return NONE.duplicate();
  }

  /** Or closing. */
  private SSLEngineResult wrapHandshake(ByteBuffer src, ByteBuffer dst) throws SSLException {
    begun = true;
    SSLEngineResult result = delegate().wrap(src, dst);
    if (result.getStatus() == Status.BUFFER_OVERFLOW) {
      sizes.overflowWrap(dst.capacity() + packet);
    }
    return result;
  }

  private boolean established() {
    if (!established && begun) {
      established = delegate().getHandshakeStatus() == NOT_HANDSHAKING;
    }
    return established;
  }

  /** Asks for room for all of the source, up to the limit, if the buffer has less. */
  private boolean roomIsShort(ByteBuffer src, ByteBuffer dst) {
    int records = (kept.remaining() + src.remaining() + RECORD - 1) / RECORD;
    int wanted = Math.min(records * packet, sizes.limit());
    if (dst.capacity() >= wanted || dst.position() > 0) {
      return false;
    }
    sizes.overflowWrap(wanted);
    return true;
  }

  private SSLEngineResult wrapRecords(ByteBuffer src, ByteBuffer dst) throws SSLException {
    int from = src.position();
    int to = dst.position();
    boolean open = openAfter(src);
    boolean fits = kept.remaining() + src.remaining() <= KEPT_LIMIT;
    if (open && fits) {
      keep(src);
      return result(Status.OK, NOT_HANDSHAKING, src.position() - from, 0);
    }
    int joined = fits && kept.hasRemaining() ? src.remaining() : 0;
    if (joined > 0) {
      keep(src);
    }
    SSLEngineResult last = result(Status.OK, NOT_HANDSHAKING, 0, 0);
    while (kept.remaining() + src.remaining() > 0) {
      if (open && kept.remaining() + src.remaining() <= REST_LIMIT) {
        keep(src);
        break;
      }
      last = wrapRecord(src, dst);
      if (last.getStatus() != Status.OK
          || last.getHandshakeStatus() != NOT_HANDSHAKING
          || last.bytesConsumed() + last.bytesProduced() == 0) {
        break;
      }
    }
    putBack(src, Math.min(joined, kept.remaining()));
    Status status = last.getStatus();
    int produced = dst.position() - to;
    if (status == Status.BUFFER_OVERFLOW) {
      if (produced > 0) {
        return result(Status.OK, NOT_HANDSHAKING, src.position() - from, produced);
      }
      sizes.overflowWrap(dst.capacity() + packet);
    }
    return result(status, last.getHandshakeStatus(), src.position() - from, produced);
  }

  private SSLEngineResult wrapRecord(ByteBuffer src, ByteBuffer dst) throws SSLException {
    if (!kept.hasRemaining()) {
      return delegate().wrap(src, dst);
    }
    SSLEngineResult result =
        src.hasRemaining()
            ? delegate().wrap(new ByteBuffer[] {kept, src}, dst)
            : delegate().wrap(kept, dst);
    giveBackIfEmpty();
    return result;
  }

  /** What was kept of a whole frame and has not been sent: Kafka comes again with what is left. */
  private void putBack(ByteBuffer src, int bytes) {
    kept.limit(kept.limit() - bytes);
    src.position(src.position() - bytes);
    giveBackIfEmpty();
  }

  private void giveBackIfEmpty() {
    if (!kept.hasRemaining() && kept.capacity() > 0) {
      lent.giveBack(kept);
      kept = NONE; // an idle connection holds none
    }
  }

  private boolean openAfter(ByteBuffer src) {
    ahead.copy(frames);
    ahead.passed(src, src.position(), src.limit());
    return ahead.open();
  }

  private void keep(ByteBuffer src) {
    if (kept.capacity() == 0) {
      kept = lent.take().clear().flip();
    }
    kept.compact().put(src).flip();
  }

  @Override
  public SSLEngineResult unwrap(ByteBuffer src, ByteBuffer[] dsts, int offset, int length)
      throws SSLException {
    sizes.begin();
    if (delayed != null) {
      SSLException thrown = delayed;
      delayed = null;
      throw thrown;
    }
    if (length != 1 || !established()) {
      begun = true;
      return unwrapHandshake(src, dsts, offset, length);
    }
    return unwrapRecords(src, dsts[offset]);
  }

  /**
   * Before 3.7.1 and 3.8.0, Kafka does not unwrap again when its buffer is empty, although an
   * engine that holds several messages within has more to say (KAFKA-16305).
   */
  private SSLEngineResult unwrapHandshake(ByteBuffer src, ByteBuffer[] dsts, int offset, int length)
      throws SSLException {
    SSLEngineResult result = unwrapOnce(src, dsts, offset, length);
    int consumed = result.bytesConsumed();
    int produced = result.bytesProduced();
    while (result.getStatus() == Status.OK
        && result.getHandshakeStatus() == NEED_UNWRAP
        && !src.hasRemaining()) {
      SSLEngineResult more = unwrapOnce(src, dsts, offset, length);
      if (more.getHandshakeStatus() == NEED_UNWRAP) {
        break;
      }
      // The status may be BUFFER_UNDERFLOW: there was nothing. FINISHED must not be lost all the
      // same.
      result = result(Status.OK, more.getHandshakeStatus(), 0, 0);
      produced += more.bytesProduced();
    }
    return result(result.getStatus(), result.getHandshakeStatus(), consumed, produced);
  }

  private SSLEngineResult unwrapOnce(ByteBuffer src, ByteBuffer[] dsts, int offset, int length)
      throws SSLException {
    try {
      return delegate().unwrap(src, dsts, offset, length);
    } catch (SSLException e) {
      throw KafkaErrors.classified(e);
    }
  }

  private SSLEngineResult unwrapRecords(ByteBuffer src, ByteBuffer dst) throws SSLException {
    if (src.limit() == src.capacity()) {
      sizes.growRead(src.capacity());
    }
    if (dst.capacity() < sizes.application() && src.remaining() > dst.remaining()) {
      return result(Status.BUFFER_OVERFLOW, NOT_HANDSHAKING, 0, 0);
    }
    int from = src.position();
    int to = dst.position();
    SSLEngineResult whole = delegate().unwrap(src, dst);
    SSLEngineResult next = whole;
    while (goesOn(next) && src.hasRemaining()) {
      next = unwrapNext(src, dst);
      whole = next.getStatus() == Status.OK ? next : whole;
    }
    if (next.getStatus() == Status.BUFFER_OVERFLOW) {
      sizes.overflowUnwrap(dst.position() + packet);
    }
    return result(
        whole.getStatus(), whole.getHandshakeStatus(), src.position() - from, dst.position() - to);
  }

  private static boolean goesOn(SSLEngineResult result) {
    return result.getStatus() == Status.OK && result.getHandshakeStatus() == NOT_HANDSHAKING;
  }

  /**
   * What was taken apart before a bad record is delivered first, as Kafka would with one at a time.
   */
  private SSLEngineResult unwrapNext(ByteBuffer src, ByteBuffer dst) {
    int bad = src.position();
    try {
      return delegate().unwrap(src, dst);
    } catch (SSLException e) {
      src.position(bad);
      delayed = e;
      return result(Status.BUFFER_UNDERFLOW, NOT_HANDSHAKING, 0, 0);
    }
  }

  @Override
  public void closeOutbound() {
    kept = NONE;
    super.closeOutbound();
  }

  private static SSLEngineResult result(
      Status status, HandshakeStatus handshake, int consumed, int produced) {
    return new SSLEngineResult(status, handshake, consumed, produced);
  }
}
