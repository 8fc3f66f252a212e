package dev.cipherlane.keys;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.TestKeys;
import dev.cipherlane.cipher.EncryptingSession;
import dev.cipherlane.cipher.Xaes;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** A few sessions for many threads: no nonce twice, and all is counted. */
class SessionsTest {
  private final DataKey key = TestKeys.dataKey("scope");
  private final Set<ByteBuffer> nonces = ConcurrentHashMap.newKeySet();

  private void encrypt(int records, long now) {
    for (int i = 0; i < records; i++) {
      byte[] out = new byte[Xaes.NONCE_SIZE + 1 + Xaes.TAG_SIZE];
      EncryptingSession session = key.session(now);
      while (!session.tryEncrypt(new byte[1], new byte[1], out, 0, now)) {
        session = key.sessionAfter(session, now);
      }
      session.addBytes(10);
      nonces.add(ByteBuffer.wrap(Arrays.copyOf(out, Xaes.NONCE_SIZE)));
    }
  }

  private void inThreads(int threads, Runnable work) throws InterruptedException {
    Thread[] all = new Thread[threads];
    for (int i = 0; i < threads; i++) {
      all[i] = new Thread(work);
      all[i].start();
    }
    for (Thread thread : all) {
      thread.join();
    }
  }

  private long prefixes() {
    return nonces.stream().map(n -> n.slice(0, EncryptingSession.PREFIX_SIZE)).distinct().count();
  }

  @Test
  void manyThreadsShareAFewSessions() throws InterruptedException { // CL-ENV-031
    inThreads(64, () -> encrypt(500, 0));
    assertThat(nonces).hasSize(32_000);
    assertThat(prefixes()).isBetween(2L, 16L);
    assertThat(key.takeUsage()).contains(new Usage(key.kid(), 32_000, 320_000));
    assertThat(key.takeUsage()).isEmpty();
  }

  @Test
  void endedSessionsStayCounted() throws InterruptedException { // CL-ENV-033
    inThreads(4, () -> encrypt(10, 0));
    inThreads(4, () -> encrypt(10, TimeUnit.MINUTES.toNanos(15)));
    assertThat(nonces).hasSize(80);
    key.destroy();
    assertThat(key.takeUsage()).contains(new Usage(key.kid(), 80, 800));
    assertThatThrownBy(() -> encrypt(1, 0)).isInstanceOf(IllegalStateException.class);
  }

  @Test
  void whatCouldNotBeReportedIsGivenBack() {
    encrypt(3, 0);
    Usage usage = key.takeUsage().orElseThrow();
    key.giveBack(usage);
    encrypt(1, 0);
    assertThat(key.takeUsage()).contains(new Usage(key.kid(), 4, 40));
  }

  @Test
  void keyThatOnlyDecryptsHasNothingToReport() {
    assertThat(key.takeUsage()).isEmpty();
    key.destroy();
    assertThat(key.takeUsage()).isEmpty();
  }
}
