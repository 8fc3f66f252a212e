package dev.cipherlane.identity;

import java.util.List;
import java.util.regex.Pattern;

/**
 * SPIFFE ids and patterns of them, as in a grant of the policy: {@code *} and {@code ?} within one
 * segment, and {@code /**} at the end for one or more segments. Thread-safe.
 */
public final class SpiffePatterns {
  /** Matches every certificate. */
  public static final SpiffePatterns ANY = new SpiffePatterns(List.of());

  private static final Pattern GLOB =
      Pattern.compile("spiffe://[a-z0-9._*?-]+(/(?!\\*\\*)[A-Za-z0-9._*?-]+)*(/\\*\\*)?");
  private static final int MAX = 512;
  private static final String BELOW = "/**";

  private final List<String> globs;
  private final List<Pattern> patterns;

  private SpiffePatterns(List<String> globs) {
    this.globs = globs;
    this.patterns = globs.stream().map(SpiffePatterns::regex).toList();
  }

  /**
   * Makes patterns.
   *
   * @param globs SPIFFE ids and patterns; none means any peer
   * @return what matches one of them
   * @throws IllegalArgumentException if one is malformed, or could match no id
   */
  public static SpiffePatterns of(List<String> globs) {
    for (String glob : globs) {
      boolean hasPath = glob.indexOf('/', "spiffe://".length()) > 0;
      if (glob.length() > MAX || !GLOB.matcher(glob).matches() || !hasPath) {
        throw new IllegalArgumentException("not a SPIFFE id or a pattern of one");
      }
    }
    return globs.isEmpty() ? ANY : new SpiffePatterns(List.copyOf(globs));
  }

  private static Pattern regex(String glob) {
    boolean below = glob.endsWith(BELOW);
    String body = below ? glob.substring(0, glob.length() - BELOW.length()) : glob;
    String regex = body.replace(".", "\\.").replace("?", "[^/]").replace("*", "[^/]*");
    return Pattern.compile(below ? regex + "(/[^/]+)+" : regex);
  }

  /**
   * Tells whether every peer is meant.
   *
   * @return whether there is no pattern
   */
  public boolean any() {
    return patterns.isEmpty();
  }

  /**
   * Tells whether a peer is meant.
   *
   * @param id its SPIFFE id
   * @return whether a pattern matches, or there is none
   */
  public boolean matches(String id) {
    return any() || patterns.stream().anyMatch(pattern -> pattern.matcher(id).matches());
  }

  /** The patterns, as they were given. */
  @Override
  public String toString() {
    return String.join(",", globs);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof SpiffePatterns patterns && patterns.globs.equals(globs);
  }

  @Override
  public int hashCode() {
    return globs.hashCode();
  }
}
