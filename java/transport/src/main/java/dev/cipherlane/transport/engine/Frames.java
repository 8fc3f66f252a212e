package dev.cipherlane.transport.engine;

import java.nio.ByteBuffer;

/**
 * Follows the frames of Kafka's protocol, a length of 4 bytes and that many bytes, to know whether
 * more bytes are certain to come: Kafka writes the parts of one frame one after another.
 */
final class Frames {
  private int lengthBytes;
  private int length;
  private long left;
  private boolean lost;

  /** Takes the state of another. */
  void copy(Frames other) {
    lengthBytes = other.lengthBytes;
    length = other.length;
    left = other.left;
    lost = other.lost;
  }

  /** Follows the bytes from an index to another, which stay where they are. */
  void follow(ByteBuffer bytes, int from, int to) {
    int at = from;
    while (at < to && !lost) {
      if (left > 0) {
        int step = (int) Math.min(left, to - at);
        left -= step;
        at += step;
      } else {
        lengthByte(bytes.get(at++));
      }
    }
  }

  private void lengthByte(byte next) {
    length = (length << Byte.SIZE) | (next & 0xff);
    lengthBytes++;
    if (lengthBytes == Integer.BYTES) {
      lost = length < 0;
      left = length;
      lengthBytes = 0;
      length = 0;
    }
  }

  /** Tells whether a frame has begun and not ended; false if these are no frames of Kafka. */
  boolean open() {
    return !lost && (left > 0 || lengthBytes > 0);
  }
}
