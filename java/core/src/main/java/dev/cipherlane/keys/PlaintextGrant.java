package dev.cipherlane.keys;

/**
 * Whether plaintext is accepted when a topic is read.
 *
 * @param accepted what the policy says
 */
record PlaintextGrant(boolean accepted) implements Grant<PlaintextGrant> {
  @Override
  public void wipe() {
    // Not a secret.
  }

  @Override
  public PlaintextGrant renewedBy(PlaintextGrant next) {
    return next;
  }
}
