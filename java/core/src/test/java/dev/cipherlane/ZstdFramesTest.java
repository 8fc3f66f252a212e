package dev.cipherlane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.github.luben.zstd.ZstdCompressCtx;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Exactly one frame, of any kind that an encoder may write, and nothing else. CL-ENV-011 */
class ZstdFramesTest {
  private static final int MAX = 1_000_000;
  private static final byte[] SKIPPABLE = {0x50, 0x2A, 0x4D, 0x18, 1, 0, 0, 0, 7};

  private final Random random = new Random(1);

  private static byte[] frame(byte[] plaintext, boolean checksum, boolean contentSize) {
    try (ZstdCompressCtx context = new ZstdCompressCtx()) {
      return context.setChecksum(checksum).setContentSize(contentSize).compress(plaintext);
    }
  }

  /** Blocks that are stored, repeat one byte, and are compressed. */
  private byte[][] plaintexts(int size) {
    byte[] noise = new byte[size];
    random.nextBytes(noise);
    byte[] text = new byte[size];
    for (int i = 0; i < size; i++) {
      text[i] = (byte) ('a' + random.nextInt(4));
    }
    return new byte[][] {noise, new byte[size], text};
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 255, 256, 65_791, 65_792, 300_000})
  void everyKindOfFrameIsReadAndNothingElse(int size) {
    for (byte[] plaintext : plaintexts(size)) {
      for (int kind = 0; kind < 4; kind++) {
        byte[] frame = frame(plaintext, (kind & 1) != 0, (kind & 2) != 0);
        assertThat(Zstd.decompress(frame, MAX)).isEqualTo(plaintext);
        refused(Arrays.copyOf(frame, frame.length - 1));
        refused(Arrays.copyOf(frame, frame.length + 1));
        refused(Arrays.copyOf(frame, frame.length / 2));
        refused(joined(frame, frame));
        refused(joined(frame, SKIPPABLE));
        refused(joined(SKIPPABLE, frame));
      }
    }
  }

  private static byte[] joined(byte[] first, byte[] second) {
    byte[] both = Arrays.copyOf(first, first.length + second.length);
    System.arraycopy(second, 0, both, first.length, second.length);
    return both;
  }

  private static void refused(byte[] frame) {
    assertThatThrownBy(() -> Zstd.decompress(frame, MAX))
        .isInstanceOf(CipherlaneException.class)
        .hasMessageContaining("decompression-failed");
  }
}
