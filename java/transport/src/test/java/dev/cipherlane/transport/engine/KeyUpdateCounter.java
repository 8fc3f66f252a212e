package dev.cipherlane.transport.engine;

import java.nio.ByteBuffer;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLException;

/**
 * Counts the KeyUpdates that an engine sends. On the wire they are known by their length alone:
 * five bytes, the type of the content and a tag, with which the JDK has 16 bytes of padding. The
 * test must send no data of that length.
 */
final class KeyUpdateCounter extends ForwardingEngine {
  private static final int HEADER = 5;
  private static final Set<Integer> LENGTHS = Set.of(5 + 1 + 16, 5 + 1 + 16 + 16);

  private final AtomicInteger sent = new AtomicInteger();

  KeyUpdateCounter(SSLEngine delegate) {
    super(delegate);
  }

  int sent() {
    return sent.get();
  }

  @Override
  public SSLEngineResult wrap(ByteBuffer[] srcs, int offset, int length, ByteBuffer dst)
      throws SSLException {
    int at = dst.position();
    SSLEngineResult result = super.wrap(srcs, offset, length, dst);
    while (at < dst.position()) {
      int bytes = dst.getShort(at + 3) & 0xffff;
      if (LENGTHS.contains(bytes)) {
        sent.incrementAndGet();
      }
      at += HEADER + bytes;
    }
    return result;
  }
}
