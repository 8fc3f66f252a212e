package dev.cipherlane.keys;

/**
 * What a lease is for.
 *
 * @param <G> the type itself
 */
interface Grant<G extends Grant<G>> {
  /** Wipes the key, if there is one. May be called more than once. */
  void wipe();

  /**
   * Chooses between this grant and the one that a renewal brought: a key that stays the same goes
   * on with its encrypting session, and the new copy is wiped. Else the caller wipes this one, once
   * nobody can find it any more.
   *
   * @param next the new grant
   * @return the one to use from now on
   */
  G renewedBy(G next);
}
