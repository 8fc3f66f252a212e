package dev.cipherlane.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.transport.engine.FrameTracker;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.RepeatedTest;

/** When a connection ends, by a clock that a test sets. CL-IDN-042 */
class ConnectionEndTest {
  private static final long LIFE = TimeUnit.SECONDS.toNanos(100);

  private final AtomicLong clock = new AtomicLong(7);
  private final FrameTracker sent = new FrameTracker();
  private final FrameTracker received = new FrameTracker();

  private ConnectionEnd end(boolean client) {
    return new ConnectionEnd(clock::get, 7 + LIFE, client);
  }

  private boolean ends(ConnectionEnd end, int percent) {
    clock.set(7 + LIFE / 100 * percent);
    return end.now(sent, received);
  }

  private static void frame(FrameTracker tracker, int announced, int there) {
    ByteBuffer bytes = ByteBuffer.allocate(4 + there).putInt(announced);
    tracker.passed(bytes, 0, 4 + there);
  }

  @RepeatedTest(20)
  void idleOnesEndFirstAndAClientsBeforeABrokers() {
    ConnectionEnd client = end(true);
    ConnectionEnd broker = end(false);
    assertThat(ends(client, 69)).isFalse();
    assertThat(ends(broker, 79)).isFalse();
    assertThat(ends(client, 81)).isTrue();
    assertThat(ends(broker, 91)).isTrue();
  }

  @RepeatedTest(20)
  void busyOnesEndBetweenFrames() {
    ConnectionEnd client = end(true);
    frame(sent, 5, 5);
    assertThat(ends(client, 84)).isFalse();
    assertThat(ends(client, 91)).isTrue();
    frame(sent, 5, 2);
    assertThat(ends(client, 99)).isFalse();
    assertThat(ends(client, 100)).isTrue();
  }

  @RepeatedTest(20)
  void nothingOutlivesTheEnd() {
    ConnectionEnd broker = end(false);
    frame(received, -1, 0); // not Kafka's protocol
    assertThat(ends(broker, 99)).isFalse();
    assertThat(ends(broker, 100)).isTrue();
  }
}
