package dev.cipherlane.testing;

import java.io.IOException;
import java.nio.file.Path;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The one line of JSON that the broker prints when it is ready. Parsed here by hand, because this
 * module has no dependencies and the line is flat: strings and a number.
 */
record ReadyLine(String bootstrap, long pid, Path dir, Path logDir) {
  private static final Pattern ESCAPE = Pattern.compile("\\\\(?:u([0-9a-fA-F]{4})|(.))");

  static ReadyLine parse(String line) throws IOException {
    return new ReadyLine(
        string(line, "bootstrap"),
        Long.parseLong(find(line, "pid", "(\\d{1,18})")),
        Path.of(string(line, "dir")),
        Path.of(string(line, "log_dir")));
  }

  private static String string(String line, String name) throws IOException {
    return ESCAPE
        .matcher(find(line, name, "\"((?:[^\"\\\\]|\\\\.)*)\""))
        .replaceAll(ReadyLine::unescape);
  }

  private static String find(String line, String name, String value) throws IOException {
    Matcher matcher = Pattern.compile("[{,]\"" + name + "\":" + value + "[,}]").matcher(line);
    if (!matcher.find()) {
      throw new IOException("no \"" + name + "\" in its answer: " + line);
    }
    return matcher.group(1);
  }

  /**
   * The broker's folder may have a quotation mark, a backslash or a control character in its name,
   * nothing worse.
   */
  private static String unescape(MatchResult escape) {
    if (escape.group(1) != null) {
      return Matcher.quoteReplacement(String.valueOf((char) Integer.parseInt(escape.group(1), 16)));
    }
    String letter = escape.group(2);
    int control = "bfnrt".indexOf(letter);
    return Matcher.quoteReplacement(
        control < 0 ? letter : "\b\f\n\r\t".substring(control, control + 1));
  }
}
