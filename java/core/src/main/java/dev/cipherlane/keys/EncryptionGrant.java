package dev.cipherlane.keys;

import java.util.Optional;

/**
 * What the key service lets a topic's producers do, while the lease lasts. Thread-safe.
 *
 * <p>A class and not a record, so that nothing prints its parts by accident.
 */
public final class EncryptionGrant implements Grant<EncryptionGrant> {
  private final Mode mode;
  private final DataKey key;

  EncryptionGrant(Mode mode, Optional<DataKey> key) {
    if ((mode == Mode.ENCRYPT) != key.isPresent()) {
      throw new IllegalArgumentException("a key belongs to the mode encrypt, and to no other");
    }
    this.mode = mode;
    this.key = key.orElse(null);
  }

  /**
   * Gives the mode.
   *
   * @return what the policy says
   */
  public Mode mode() {
    return mode;
  }

  /**
   * Gives the key.
   *
   * @return the data key; null unless the mode is {@link Mode#ENCRYPT}
   */
  public DataKey key() {
    return key;
  }

  @Override
  public void wipe() {
    if (key != null) {
      key.destroy();
    }
  }

  @Override
  public EncryptionGrant renewedBy(EncryptionGrant next) {
    if (key != null && next.key != null && sameKey(next.key)) {
      next.wipe();
      return this;
    }
    return next;
  }

  private boolean sameKey(DataKey other) {
    return key.kid().equals(other.kid()) && key.scope().equals(other.scope());
  }
}
