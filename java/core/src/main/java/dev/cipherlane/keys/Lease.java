package dev.cipherlane.keys;

/**
 * A grant and its time.
 *
 * @param grant what may be done
 * @param term how long
 * @param <G> the type of grant
 */
record Lease<G extends Grant<G>>(G grant, Term term) {
  boolean fresh(long now) {
    return now - term.refreshAt() < 0;
  }

  boolean usable(long now) {
    return now - term.expiresAt() < 0;
  }
}
