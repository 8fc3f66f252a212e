package dev.cipherlane.keys;

/** What the policy says of a topic. */
public enum Mode {
  /** Values are encrypted. */
  ENCRYPT,
  /** Values are passed on unchanged. */
  CLEAR,
  /** Nothing is sent. */
  FORBID
}
