package dev.cipherlane;

/** What a client counts of records, by the names of {@code spec/kafka.md}, "Numbers". */
public enum Counter {
  /** Records encrypted. */
  RECORDS_ENCRYPTED("records-encrypted-total", "records encrypted"),
  /** Records decrypted. */
  RECORDS_DECRYPTED("records-decrypted-total", "records decrypted"),
  /** Records left out under the action skip. */
  SKIPPED("skipped-total", "records that could not be decrypted and were left out"),
  /** Records given to the dead-letter topic. */
  DEAD_LETTERED("dead-lettered-total", "records that were given to the dead-letter topic"),
  /** Records handed over as ciphertext with a mark. */
  MARKED("marked-total", "records handed over as they were, with a header that says why"),
  /** Records read in the clear. */
  PLAINTEXT_ACCEPTED(
      "plaintext-accepted-total", "records read in the clear, which the policy accepts");

  private final String label;
  private final String description;

  Counter(String label, String description) {
    this.label = label;
    this.description = description;
  }

  /**
   * Gives the name.
   *
   * @return as the specification has it
   */
  public String label() {
    return label;
  }

  /**
   * Describes it.
   *
   * @return in a few words
   */
  public String description() {
    return description;
  }
}
