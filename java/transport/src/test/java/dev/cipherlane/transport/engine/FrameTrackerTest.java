package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Boundaries, however the bytes come in pieces. */
class FrameTrackerTest {
  @Test
  void followsAnyPieces() {
    long seed = System.nanoTime();
    Random random = new Random(seed);
    for (int round = 0; round < 500; round++) {
      int count = 1 + random.nextInt(20);
      ByteBuffer bytes = ByteBuffer.allocate(count * 304);
      boolean[] boundary = new boolean[bytes.capacity() + 1];
      for (int i = 0; i < count; i++) {
        int length = random.nextInt(4) == 0 ? 0 : random.nextInt(300);
        bytes.putInt(length).position(bytes.position() + length);
        boundary[bytes.position()] = true;
      }
      int end = bytes.position();
      FrameTracker tracker = new FrameTracker();
      assertThat(tracker.atBoundary()).isTrue();
      for (int at = 0; at < end; ) {
        int next = Math.min(end, at + 1 + random.nextInt(40));
        tracker.passed(bytes, at, next);
        at = next;
        assertThat(tracker.atBoundary()).as("seed %d, byte %d", seed, at).isEqualTo(boundary[at]);
        assertThat(tracker.open()).as("seed %d, byte %d", seed, at).isEqualTo(!boundary[at]);
      }
      assertThat(tracker.frames()).isEqualTo(count);
    }
  }

  @Test
  void findsNoBoundaryInWhatIsNotKafkas() {
    FrameTracker tracker = new FrameTracker();
    ByteBuffer bytes = ByteBuffer.allocate(100).putInt(-1).putInt(0);
    tracker.passed(bytes, 0, 8);
    assertThat(tracker.atBoundary()).isFalse();
    assertThat(tracker.open()).isFalse();
  }
}
