package dev.cipherlane;

/** The layers of {@code spec/errors.md}, in the order in which a record meets them. */
public enum Layer {
  /** A setting. */
  CONFIGURATION("configuration"),
  /** What the application hands over. */
  INPUT("input"),
  /** The bytes of an envelope. */
  PARSE("parse"),
  /** What the key service's policy allows. */
  POLICY("policy"),
  /** The data key and whether it is the one that the kid names. */
  KEY_ID("key-id"),
  /** The tag, and what is under it. */
  DECRYPTION("decryption"),
  /** The key service and the way to it. */
  KEY_SERVICE("key-service"),
  /** This client. */
  CLIENT("client");

  private final String label;

  Layer(String label) {
    this.label = label;
  }

  /**
   * Gives the layer's name in the specification and in test vectors.
   *
   * @return for example {@code key-id}
   */
  public String label() {
    return label;
  }
}
