package dev.cipherlane;

/**
 * The key of a record, as far as the caller sees it: unknown, null and empty are three different
 * things where the record key is bound [CL-ENV-008].
 */
public final class RecordKey {
  /** That the caller does not see it. */
  public static final RecordKey UNKNOWN = new RecordKey(false, null);

  private final boolean known;
  private final byte[] bytes;

  private RecordKey(boolean known, byte[] bytes) {
    this.known = known;
    this.bytes = bytes;
  }

  /**
   * Makes one.
   *
   * @param bytes the key as it is stored, or null for a null key; not copied
   * @return the key, known
   */
  public static RecordKey of(byte[] bytes) {
    return new RecordKey(true, bytes);
  }

  boolean known() {
    return known;
  }

  byte[] bytes() {
    return bytes;
  }
}
