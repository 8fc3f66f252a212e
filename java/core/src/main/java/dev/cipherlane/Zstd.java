package dev.cipherlane;

import static com.github.luben.zstd.Zstd.compressByteArray;
import static com.github.luben.zstd.Zstd.decompressByteArray;
import static com.github.luben.zstd.Zstd.defaultCompressionLevel;
import static com.github.luben.zstd.Zstd.errDstSizeTooSmall;
import static com.github.luben.zstd.Zstd.findFrameCompressedSize;

import com.github.luben.zstd.ZstdException;
import java.util.Arrays;
import java.util.Optional;

/**
 * One zstd frame. Decompresses exactly one, with memory bounded by the limit and not by what the
 * frame claims [CL-ENV-011]. Not even this class loads without the library zstd-jni.
 */
final class Zstd {
  private static final byte[] MAGIC = {0x28, (byte) 0xB5, 0x2F, (byte) 0xFD};
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
      // Skippable frames have other magics. The walk over the blocks takes no memory.
      if (startsWithMagic(frame) && findFrameCompressedSize(frame) == frame.length) {
        return grow(frame, max);
      }
      throw failed("not one zstd frame", null);
    } catch (ZstdException e) {
      throw failed("not one zstd frame", e);
    }
  }

  private static boolean startsWithMagic(byte[] frame) {
    return frame.length >= MAGIC.length
        && Arrays.equals(frame, 0, MAGIC.length, MAGIC, 0, MAGIC.length);
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
