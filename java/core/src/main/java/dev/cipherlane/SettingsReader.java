package dev.cipherlane;

import dev.cipherlane.identity.ServerNames;
import dev.cipherlane.identity.SpiffePatterns;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Takes single settings out of a client's properties, with the type and range that {@code
 * spec/configuration.md} gives them, or refuses them as {@code configuration-invalid} [CL-CFG-002].
 */
final class SettingsReader {
  private final Map<String, ?> settings;

  SettingsReader(Map<String, ?> settings) {
    this.settings = settings;
  }

  static CipherlaneException invalid(String name, String why) {
    return new CipherlaneException(ErrorCode.CONFIGURATION_INVALID, "setting " + name + ": " + why);
  }

  private String text(String name) {
    if (settings.get(name) instanceof String text && !text.isBlank()) {
      return text.strip();
    }
    throw invalid(name, "required");
  }

  /** The text, or another where the setting is missing. */
  private String text(String name, String otherwise) {
    Object value = settings.get(name);
    return value == null ? otherwise : value.toString().strip();
  }

  List<URI> urls(String name) {
    return list(text(name)).map(url -> url(name, url)).toList();
  }

  private static Stream<String> list(String text) {
    return Arrays.stream(text.split(",", -1)).map(String::strip);
  }

  private static URI url(String name, String text) {
    try {
      URI url = new URI(text);
      boolean bare =
          url.getRawQuery() == null
              && url.getRawFragment() == null
              && url.getRawUserInfo() == null
              && (url.getRawPath().isEmpty() || url.getRawPath().equals("/"));
      if ("https".equals(url.getScheme()) && url.getHost() != null && bare && url.getPort() != 0) {
        return url;
      }
    } catch (URISyntaxException | NullPointerException e) {
      // Said below, for every mistake alike.
    }
    throw invalid(name, "takes https://host:port, several separated by commas");
  }

  Path path(String name) {
    try {
      return Path.of(text(name));
    } catch (InvalidPathException e) {
      throw invalid(name, "takes the path of a file");
    }
  }

  boolean has(String name) {
    return settings.get(name) != null;
  }

  boolean truth(String name, boolean otherwise) {
    return switch (text(name, String.valueOf(otherwise))) {
      case "true" -> true;
      case "false" -> false;
      default -> throw invalid(name, "takes true or false");
    };
  }

  SpiffePatterns spiffePatterns(String name) {
    String text = text(name, "");
    try {
      return SpiffePatterns.of(text.isEmpty() ? List.of() : list(text).toList());
    } catch (IllegalArgumentException e) {
      throw invalid(name, "takes SPIFFE ids and patterns of them, separated by commas");
    }
  }

  List<String> serverNames(String name) {
    String text = text(name, "");
    List<String> names = text.isEmpty() ? List.of() : list(text).toList();
    if (!ServerNames.valid(names)) {
      throw invalid(
          name,
          "takes DNS names in lowercase and addresses, separated by commas, at most "
              + ServerNames.MAX);
    }
    return names;
  }

  Duration millis(String name, int max, int otherwise) {
    return Duration.ofMillis(integer(name, 1, max, otherwise));
  }

  int integer(String name, int min, int max, int otherwise) {
    try {
      int number = Integer.parseInt(text(name, String.valueOf(otherwise)));
      if (number >= min && number <= max) {
        return number;
      }
    } catch (NumberFormatException e) {
      // Said below, for every mistake alike.
    }
    throw invalid(name, "takes an integer from " + min + " to " + max);
  }

  /** Names and globs; an empty text is an empty list. */
  TopicPatterns topics(String name) {
    String text = text(name, "");
    try {
      return TopicPatterns.of(text.isEmpty() ? List.of() : list(text).toList());
    } catch (IllegalArgumentException e) {
      throw invalid(name, "takes topic names and globs (* and ?), separated by commas");
    }
  }

  FailureAction failureAction(String name) {
    return FailureAction.of(text(name, FailureAction.FAIL.label()))
        .orElseThrow(() -> invalid(name, "takes fail, skip, dead-letter or mark"));
  }

  String deadLetterTopic(String name) {
    String template = text(name, Configuration.TOPIC_MARK + ".dead-letter");
    if (!TopicName.valid(template.replace(Configuration.TOPIC_MARK, "t"))) {
      throw invalid(name, "takes a topic's name, in which {topic} stands for the record's topic");
    }
    return template;
  }
}
