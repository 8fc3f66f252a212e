package dev.cipherlane;

/** Kafka's rules for topic names, which scopes follow too ({@code spec/limits.md}). */
public final class TopicName {
  private static final int MAX = 249;

  private TopicName() {}

  /**
   * Tells whether a name is valid.
   *
   * @param name 1 to 249 of {@code A-Z a-z 0-9 . _ -}, but not {@code .} or {@code ..}
   * @return whether it follows the rules
   */
  public static boolean valid(String name) {
    return !name.isEmpty()
        && name.length() <= MAX
        && !name.equals(".")
        && !name.equals("..")
        && allAllowed(name);
  }

  /** Without a stream: a reader asks for every record. */
  private static boolean allAllowed(String name) {
    for (int i = 0; i < name.length(); i++) {
      if (!allowed(name.charAt(i))) {
        return false;
      }
    }
    return true;
  }

  private static boolean allowed(int c) {
    return (c >= 'a' && c <= 'z')
        || (c >= 'A' && c <= 'Z')
        || (c >= '0' && c <= '9')
        || c == '.'
        || c == '_'
        || c == '-';
  }

  /**
   * Refuses what is no topic name.
   *
   * @param topic the name
   * @throws CipherlaneException {@code topic-invalid}
   */
  public static void check(String topic) {
    if (!valid(topic)) {
      // Not the name itself: it may hold anything, and be of any length.
      throw new CipherlaneException(
          ErrorCode.TOPIC_INVALID, "1 to 249 of A-Z a-z 0-9 . _ - make a topic's name");
    }
  }
}
