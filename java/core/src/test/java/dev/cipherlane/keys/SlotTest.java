package dev.cipherlane.keys;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class SlotTest {
  private static final Term TERM = new Term(50, 100);

  private final Slot<Key> slot = new Slot<>("topic", null, 0);
  private final List<Key> foundWhileWiping = new ArrayList<>();

  /** Looks, while it is wiped, at what another thread would find then. */
  private final class Key implements Grant<Key> {
    @Override
    public void wipe() {
      foundWhileWiping.add(slot.usable(0));
    }

    @Override
    public Key renewedBy(Key next) {
      return next;
    }
  }

  private Key grant() {
    Key key = new Key();
    assertThat(slot.claim(60, 0)).isTrue();
    slot.granted(key, TERM);
    return key;
  }

  @Test
  void keyIsWipedOnceNobodyFindsIt() { // CL-KEY-015
    grant();
    Key renewed = grant();
    assertThat(foundWhileWiping).containsExactly(renewed);
    slot.close();
    assertThat(foundWhileWiping).containsExactly(renewed, null);
  }
}
