package dev.cipherlane.transport.engine;

import java.nio.ByteBuffer;

/**
 * Follows the frames of Kafka's protocol in one direction (a signed 32-bit length, big-endian, then
 * as many bytes), to know where none is half sent, and whether more bytes are certain to come:
 * Kafka writes the parts of one frame one after another. Not thread-safe.
 */
public final class FrameTracker {
  private static final int LENGTH_BYTES = 4;

  private int lengthBytes; // of the length, read so far
  private int length;
  private long left; // of the frame's body
  private boolean lost;
  private long frames;

  /** Takes the state of another. */
  void copy(FrameTracker other) {
    lengthBytes = other.lengthBytes;
    length = other.length;
    left = other.left;
    lost = other.lost;
    frames = other.frames;
  }

  /** Follows bytes that went by, from an index to another; the buffer's position stays. */
  public void passed(ByteBuffer bytes, int from, int to) {
    int at = from;
    while (at < to && !lost) {
      if (left > 0) {
        long skipped = Math.min(left, to - at);
        left -= skipped;
        at += (int) skipped;
        countIfDone();
      } else {
        readLength(bytes.get(at++));
      }
    }
  }

  private void readLength(byte next) {
    length = length << Byte.SIZE | (next & 0xFF);
    if (++lengthBytes == LENGTH_BYTES) {
      lost = length < 0; // not Kafka's protocol: there are no more boundaries
      left = length;
      lengthBytes = length == 0 ? 0 : lengthBytes;
      frames += length == 0 ? 1 : 0;
    }
  }

  private void countIfDone() {
    if (left == 0) {
      frames++;
      lengthBytes = 0;
    }
  }

  /** Whether the last frame is whole; false if these are no frames of Kafka. */
  public boolean atBoundary() {
    return !lost && left == 0 && lengthBytes == 0;
  }

  /** Whether a frame has begun and not ended; false if these are no frames of Kafka. */
  boolean open() {
    return !lost && !atBoundary();
  }

  /** Frames that went by whole. */
  public long frames() {
    return frames;
  }
}
