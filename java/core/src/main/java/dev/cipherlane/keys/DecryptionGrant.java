package dev.cipherlane.keys;

import dev.cipherlane.cipher.KeyId;
import java.util.function.Consumer;

/** A data key for reading one topic, and whom to tell when it is wiped. */
final class DecryptionGrant implements Grant<DecryptionGrant> {
  private final DataKey key;
  private final Consumer<KeyId> wiped;

  DecryptionGrant(DataKey key, Consumer<KeyId> wiped) {
    this.key = key;
    this.wiped = wiped;
  }

  DataKey key() {
    return key;
  }

  @Override
  public void wipe() {
    key.destroy();
    wiped.accept(key.kid());
  }

  @Override
  public DecryptionGrant renewedBy(DecryptionGrant next) {
    if (key.scope().equals(next.key.scope())) {
      // Same kid, same scope: nothing was derived from the new copy yet, so nobody has to be told.
      next.key.destroy();
      return this;
    }
    return next;
  }
}
