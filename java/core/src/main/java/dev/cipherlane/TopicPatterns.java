package dev.cipherlane;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Names and globs of topics: {@code *} stands for any run of characters, {@code ?} for one, over
 * the whole name. Thread-safe.
 */
public final class TopicPatterns {
  /** Matches nothing. */
  public static final TopicPatterns NONE = new TopicPatterns(List.of());

  private static final Pattern GLOB = Pattern.compile("[A-Za-z0-9._*?-]{1,249}");
  private static final int REMEMBERED = 10_000;

  private final Pattern pattern;
  // Every record asks, and nearly all about the same few topics.
  private final Map<String, Boolean> known = new ConcurrentHashMap<>();

  private TopicPatterns(List<String> globs) {
    this.pattern =
        globs.isEmpty()
            ? null
            : Pattern.compile(
                globs.stream().map(TopicPatterns::regex).collect(Collectors.joining("|")));
  }

  /**
   * Makes patterns.
   *
   * @param globs names and globs
   * @return what matches any of them
   * @throws IllegalArgumentException if one is empty, longer than 249 characters, or has characters
   *     that no topic has
   */
  public static TopicPatterns of(List<String> globs) {
    for (String glob : globs) {
      if (!GLOB.matcher(glob).matches()) {
        throw new IllegalArgumentException("not a topic's name or glob");
      }
    }
    return globs.isEmpty() ? NONE : new TopicPatterns(globs);
  }

  private static String regex(String glob) {
    return glob.replace(".", "\\.").replace('?', '.').replace("*", ".*");
  }

  /**
   * Tells whether a topic is meant.
   *
   * @param topic its name
   * @return whether any pattern matches
   */
  public boolean matches(String topic) {
    if (pattern == null) {
      return false;
    }
    Boolean matches = known.get(topic);
    return matches != null ? matches : matchesNew(topic);
  }

  private boolean matchesNew(String topic) {
    boolean matches = pattern.matcher(topic).matches();
    if (known.size() >= REMEMBERED) {
      known.clear();
    }
    known.put(topic, matches);
    return matches;
  }
}
