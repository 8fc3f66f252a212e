package dev.cipherlane.transport.engine;

import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLException;

/**
 * Counts the KeyUpdates that an engine sends and receives. On the wire they are known by their
 * length alone: five bytes, the type of the content and a tag, with which the JDK has 16 bytes of
 * padding. The test must send no data of that length.
 */
final class KeyUpdateCounter extends ForwardingEngine {
  private static final int HEADER = 5;
  private static final Set<Integer> LENGTHS = Set.of(5 + 1 + 16, 5 + 1 + 16 + 16);

  private final AtomicInteger sent = new AtomicInteger();
  private final AtomicInteger received = new AtomicInteger();

  KeyUpdateCounter(SSLEngine delegate) {
    super(delegate);
  }

  int sent() {
    return sent.get();
  }

  int received() {
    return received.get();
  }

  @Override
  public SSLEngineResult wrap(ByteBuffer[] srcs, int offset, int length, ByteBuffer dst)
      throws SSLException {
    int from = dst.position();
    SSLEngineResult result = super.wrap(srcs, offset, length, dst);
    count(sent, dst, from);
    return result;
  }

  @Override
  public SSLEngineResult unwrap(ByteBuffer src, ByteBuffer[] dsts, int offset, int length)
      throws SSLException {
    int from = src.position();
    SSLEngineResult result = super.unwrap(src, dsts, offset, length);
    count(received, src, from);
    return result;
  }

  /** Looks at the records from there to the buffer's position. */
  private static void count(AtomicInteger counter, ByteBuffer records, int from) {
    int at = from;
    while (at < records.position()) {
      int bytes = records.getShort(at + 3) & 0xffff;
      if (LENGTHS.contains(bytes)) {
        counter.incrementAndGet();
      }
      at += HEADER + bytes;
    }
  }
}
