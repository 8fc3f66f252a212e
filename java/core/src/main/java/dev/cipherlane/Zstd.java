package dev.cipherlane;

import static com.github.luben.zstd.Zstd.compressByteArray;
import static com.github.luben.zstd.Zstd.decompressByteArray;
import static com.github.luben.zstd.Zstd.defaultCompressionLevel;
import static com.github.luben.zstd.Zstd.errDstSizeTooSmall;

import com.github.luben.zstd.ZstdException;
import java.util.Arrays;
import java.util.Optional;

/**
 * One zstd frame. Decompresses exactly one, with memory bounded by the limit and not by what the
 * frame claims [CL-ENV-011]. Not even this class loads without the library zstd-jni.
 */
final class Zstd {
  private static final byte[] MAGIC = {0x28, (byte) 0xB5, 0x2F, (byte) 0xFD};
  private static final int DESCRIPTOR = MAGIC.length;
  private static final int HAS_CHECKSUM = 4;
  private static final int SINGLE_SEGMENT = 32;
  private static final int BLOCK_HEADER = 3;
  private static final int REPEATED_BYTE = 1;
  private static final int RESERVED = 3;
  // The magic, the descriptor, one byte of window or size, a block of nothing.
  private static final int MIN_FRAME = DESCRIPTOR + 2 + BLOCK_HEADER;
  private static final int FIRST_SIZE = 1024;
  private static final int GROWTH = 8;

  private Zstd() {}

  /**
   * Compresses to a frame that states its content size [CL-ENV-045].
   *
   * @param plaintext what to compress
   * @return the frame; empty if it would not be shorter than the plaintext
   * @throws CipherlaneException {@code internal} if the library fails
   */
  static Optional<byte[]> compress(byte[] plaintext) {
    byte[] frame = new byte[Math.max(0, plaintext.length - 1)];
    try {
      int level = defaultCompressionLevel();
      long size = compressByteArray(frame, 0, frame.length, plaintext, 0, plaintext.length, level);
      return Optional.of(Arrays.copyOf(frame, (int) size));
    } catch (ZstdException e) {
      if (e.getErrorCode() == errDstSizeTooSmall()) {
        return Optional.empty();
      }
      throw new CipherlaneException(ErrorCode.INTERNAL, "zstd failed to compress", e);
    }
  }

  /** Loads the library. */
  static void load() {
    defaultCompressionLevel();
  }

  /**
   * Decompresses.
   *
   * @param frame what was encrypted
   * @param max longest plaintext, in bytes
   * @return the plaintext
   * @throws CipherlaneException {@code decompression-failed} or {@code plaintext-too-long}
   */
  static byte[] decompress(byte[] frame, int max) {
    try {
      if (isOneFrame(frame)) {
        return grow(frame, max);
      }
      throw failed("not one zstd frame", null);
    } catch (ZstdException e) {
      throw failed("not one zstd frame", e);
    }
  }

  /**
   * Walks over the blocks, which takes no memory, to where the frame ends: RFC 8878, section 3.1.1.
   * The library can do this from 1.5.7 on, but kafka-clients before 4.4 bring older ones.
   */
  private static boolean isOneFrame(byte[] frame) {
    // Skippable frames have other magics.
    if (frame.length < MIN_FRAME || !Arrays.equals(frame, 0, DESCRIPTOR, MAGIC, 0, DESCRIPTOR)) {
      return false;
    }
    int descriptor = frame[DESCRIPTOR];
    int checksum = (descriptor & HAS_CHECKSUM) != 0 ? Integer.BYTES : 0;
    return afterBlocks(frame, DESCRIPTOR + 1 + headerSize(descriptor)) == checksum;
  }

  /** Bytes between the descriptor and the first block: window, dictionary and content size. */
  private static int headerSize(int descriptor) {
    boolean single = (descriptor & SINGLE_SEGMENT) != 0;
    int dictionary = (1 << (descriptor & 3)) >> 1;
    int sizeBits = (descriptor >> 6) & 3;
    int contentSize = sizeBits == 0 ? (single ? 1 : 0) : 1 << sizeBits;
    return (single ? 0 : 1) + dictionary + contentSize;
  }

  /** Bytes behind the last block; -1 if a block is cut off or of a reserved type. */
  private static int afterBlocks(byte[] frame, int first) {
    int at = first;
    while (at <= frame.length - BLOCK_HEADER) {
      int header = (frame[at] & 0xFF) | (frame[at + 1] & 0xFF) << 8 | (frame[at + 2] & 0xFF) << 16;
      int type = (header >> 1) & 3;
      int size = type == REPEATED_BYTE ? 1 : header >> 3;
      at += BLOCK_HEADER;
      if (type == RESERVED || size > frame.length - at) {
        return -1;
      }
      at += size;
      if ((header & 1) != 0) {
        return frame.length - at;
      }
    }
    return -1;
  }

  /** Tries larger and larger arrays: the size that the frame claims is not believed. */
  private static byte[] grow(byte[] frame, int max) {
    for (long size = Math.max(FIRST_SIZE, frame.length); ; size *= GROWTH) {
      byte[] plaintext = new byte[(int) Math.min(max, size)];
      try {
        long used = decompressByteArray(plaintext, 0, plaintext.length, frame, 0, frame.length);
        return Arrays.copyOf(plaintext, (int) used);
      } catch (ZstdException e) {
        Arrays.fill(plaintext, (byte) 0);
        if (e.getErrorCode() != errDstSizeTooSmall()) {
          throw e;
        }
      }
      if (size >= max) {
        throw new CipherlaneException(
            ErrorCode.PLAINTEXT_TOO_LONG,
            "decompresses to more than cipherlane.max.plaintext.bytes, which is " + max);
      }
    }
  }

  private static CipherlaneException failed(String detail, Throwable cause) {
    return new CipherlaneException(ErrorCode.DECOMPRESSION_FAILED, detail, cause);
  }
}
