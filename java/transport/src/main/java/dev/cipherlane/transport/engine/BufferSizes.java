package dev.cipherlane.transport.engine;

/**
 * The sizes of Kafka's three buffers for one connection, in bytes. They begin with one TLS record
 * and grow where records come in numbers; Kafka never shrinks a buffer, so neither do they.
 *
 * <p>Kafka asks for the size of both its network buffers with the same call, {@code
 * getPacketBufferSize()}. It grows the one for writing only right after a wrap that overflowed, so
 * then the answer is that buffer's size.
 */
final class BufferSizes {
  private final int readLimit;
  private final int writeLimit;
  private int netRead;
  private int netWrite;
  private int application;
  private boolean wrapOverflowed;

  /** Takes the size of one packet and of its content, and to how many packets buffers may grow. */
  BufferSizes(int packet, int content, int read, int written) {
    netRead = packet;
    netWrite = packet;
    application = content;
    readLimit = packet * read;
    writeLimit = packet * written;
  }

  int packet() {
    return wrapOverflowed ? netWrite : netRead;
  }

  int application() {
    return application;
  }

  /** A wrap or an unwrap begins. */
  void begin() {
    wrapOverflowed = false;
  }

  /** Tells how much a wrap may ask for. */
  int limit() {
    return writeLimit;
  }

  /** A wrap ends with BUFFER_OVERFLOW: only with more room is the next one sure to go on. */
  void overflowWrap(int wanted) {
    netWrite = Math.max(netWrite, wanted);
    wrapOverflowed = true;
  }

  /** A read filled the buffer to the last byte: there may be more to have in one go. */
  void growRead(int capacity) {
    netRead = Math.max(netRead, Math.min(readLimit, 2 * capacity));
    application = Math.max(application, netRead);
  }

  /**
   * An unwrap ends with BUFFER_OVERFLOW. Kafka takes it for a mistake unless the size is greater
   * than what is in the buffer.
   */
  void overflowUnwrap(int wanted) {
    application = Math.max(application, wanted);
  }
}
