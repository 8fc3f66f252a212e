package dev.cipherlane;

import java.util.Arrays;
import java.util.Optional;

/**
 * What consuming does with a record that will never be readable ({@code
 * cipherlane.failure.action}). Whether an error is of that kind says {@link
 * ErrorCode#concernsRecord}.
 */
public enum FailureAction {
  /** Reading the value raises the error. */
  FAIL("fail"),
  /** The record is left out, and counted. */
  SKIP("skip"),
  /** The record is left out once another topic has it. */
  DEAD_LETTER("dead-letter"),
  /** The record stays as it was read, with a header that says why. */
  MARK("mark");

  private final String label;

  FailureAction(String label) {
    this.label = label;
  }

  /**
   * Finds an action.
   *
   * @param label for example {@code dead-letter}
   * @return empty if there is none of that name
   */
  static Optional<FailureAction> of(String label) {
    return Arrays.stream(values()).filter(action -> action.label.equals(label)).findFirst();
  }

  /**
   * Gives the word that stands in settings.
   *
   * @return for example {@code dead-letter}
   */
  public String label() {
    return label;
  }
}
