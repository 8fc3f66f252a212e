package dev.cipherlane.cipher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.TestKeys;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Nonces never repeat, and sessions end in time. */
class EncryptingSessionTest {
  private static final byte[] AAD = {1};
  private static final byte[] PLAINTEXT = {2, 3};
  private static final byte[] PREFIX = new byte[EncryptingSession.PREFIX_SIZE];

  private final Secret key = Secret.take(TestKeys.bytes());
  private final byte[] out = new byte[PLAINTEXT.length + 40];

  private boolean encrypt(EncryptingSession session, long now) {
    return session.tryEncrypt(AAD, PLAINTEXT, out, 0, now);
  }

  @Test
  void counterBeginsAtZeroAndCountsOn() { // CL-ENV-031
    EncryptingSession session = EncryptingSession.begin(key, 0);
    for (int i = 0; i < 1000; i++) {
      assertThat(encrypt(session, 0)).isTrue();
      assertThat(ByteBuffer.wrap(out).getInt(EncryptingSession.PREFIX_SIZE)).isEqualTo(i);
    }
    session.addBytes(1500);
    session.addBytes(500);
    assertThat(session.records()).isEqualTo(1000);
    assertThat(session.bytes()).isEqualTo(2000);
  }

  @Test
  void noNonceComesTwiceFrom64Threads() throws InterruptedException { // CL-ENV-031
    EncryptingSession session = EncryptingSession.begin(key, 0);
    Set<ByteBuffer> nonces = ConcurrentHashMap.newKeySet();
    ExecutorService threads = Executors.newFixedThreadPool(64);
    for (int i = 0; i < 64; i++) {
      threads.execute(() -> encrypt1000(session, nonces));
    }
    threads.shutdown();
    assertThat(threads.awaitTermination(60, TimeUnit.SECONDS)).isTrue();
    assertThat(nonces).hasSize(64_000);
    assertThat(session.records()).isEqualTo(64_000);
  }

  private static void encrypt1000(EncryptingSession session, Set<ByteBuffer> nonces) {
    for (int i = 0; i < 1000; i++) {
      byte[] own = new byte[PLAINTEXT.length + 40];
      session.tryEncrypt(AAD, PLAINTEXT, own, 0, 0);
      nonces.add(ByteBuffer.wrap(Arrays.copyOf(own, Xaes.NONCE_SIZE)));
    }
  }

  @Test
  void eachSessionHasItsOwnRandomBytes() { // CL-ENV-030
    Set<ByteBuffer> prefixes = new HashSet<>();
    for (int i = 0; i < 1000; i++) {
      encrypt(EncryptingSession.begin(key, 0), 0);
      prefixes.add(ByteBuffer.wrap(Arrays.copyOf(out, EncryptingSession.PREFIX_SIZE)));
    }
    assertThat(prefixes).hasSize(1000);
  }

  @Test
  void endsAfterTheLastCounter() { // CL-ENV-032
    EncryptingSession session = EncryptingSession.at(key, PREFIX, 0xFFFF_FFFDL, 0);
    assertThat(encrypt(session, 0)).isTrue();
    assertThat(encrypt(session, 0)).isTrue();
    assertThat(ByteBuffer.wrap(out).getInt(EncryptingSession.PREFIX_SIZE)).isEqualTo(0xFFFF_FFFE);
    byte[] before = out.clone();
    for (int i = 0; i < 10; i++) {
      assertThat(encrypt(session, 0)).isFalse();
    }
    assertThat(out).isEqualTo(before);
    assertThat(session.records()).isEqualTo(EncryptingSession.MAX_RECORDS);
  }

  @Test
  void endsAfterFifteenMinutes() { // CL-ENV-033
    long begin = Long.MAX_VALUE - 5; // A clock may wrap.
    EncryptingSession session = EncryptingSession.begin(key, begin);
    assertThat(encrypt(session, begin)).isTrue();
    assertThat(encrypt(session, begin + TimeUnit.MINUTES.toNanos(15) - 1)).isTrue();
    assertThat(encrypt(session, begin + TimeUnit.MINUTES.toNanos(15))).isFalse();
    assertThat(encrypt(session, begin + TimeUnit.MINUTES.toNanos(16))).isFalse();
  }

  @Test
  void encryptsNothingOnceDestroyed() { // CL-ENV-034
    EncryptingSession session = EncryptingSession.begin(key, 0);
    assertThat(encrypt(session, 0)).isTrue();
    session.destroy();
    assertThatThrownBy(() -> encrypt(session, 0)).isInstanceOf(IllegalStateException.class);
    key.destroy();
    assertThatThrownBy(() -> EncryptingSession.begin(key, 0))
        .isInstanceOf(IllegalStateException.class);
  }
}
