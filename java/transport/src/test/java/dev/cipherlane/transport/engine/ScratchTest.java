package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class ScratchTest {
  private static final int MORE_THAN_ARE_KEPT = 4 * Runtime.getRuntime().availableProcessors() + 1;

  @Test
  void lendsWhatWasGivenBackAndEmpty() {
    Scratch first = Scratch.take();
    first.in().put((byte) 1);
    first.giveBack();
    Scratch again = Scratch.take();
    assertThat(again).isSameAs(first);
    assertThat(again.in().position()).isZero();
    assertThat(again.in().isDirect() && again.out().isDirect()).isTrue();
    again.giveBack();
  }

  @Test
  void lendsNoneTwice() {
    Set<Scratch> lent = Collections.newSetFromMap(new IdentityHashMap<>());
    for (int i = 0; i < MORE_THAN_ARE_KEPT; i++) {
      lent.add(Scratch.take());
    }
    assertThat(lent).hasSize(MORE_THAN_ARE_KEPT);
    lent.forEach(Scratch::giveBack);
  }

  @Test
  void lendsToOneThreadAtATime() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(8);
    try {
      Callable<Boolean> alone = () -> IntStream.range(0, 20_000).allMatch(i -> marksStay(i));
      for (var each : threads.invokeAll(Collections.nCopies(8, alone))) {
        assertThat(each.get()).isTrue();
      }
    } finally {
      threads.shutdownNow();
    }
  }

  private static boolean marksStay(int i) {
    Scratch scratch = Scratch.take();
    long mark = Thread.currentThread().getId() << 32 | i;
    scratch.in().putLong(0, mark);
    Thread.onSpinWait();
    boolean stays = scratch.in().getLong(0) == mark;
    scratch.giveBack();
    return stays;
  }
}
