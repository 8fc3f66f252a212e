package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Memory of a Java machine after a collection, in bytes. Where its whole heap was touched at the
 * start ({@code -XX:+AlwaysPreTouch}), resident memory grows by what is outside the heap alone.
 *
 * @param heap what is used of it
 * @param resident all that the process has, but for files
 */
record Memory(long heap, long resident) {
  private static final Pattern USED = Pattern.compile("used (\\d+)K");
  private static final Pattern RESIDENT = Pattern.compile("RssAnon:\\s+(\\d+) kB");
  private static final int KIB = 1_024;

  static Memory of(long pid) throws IOException {
    jcmd(pid, "GC.run");
    jcmd(pid, "GC.run"); // The first one's cleaners may have freed more.
    String status = Files.readString(Path.of("/proc/" + pid + "/status"));
    return new Memory(kib(USED, jcmd(pid, "GC.heap_info")), kib(RESIDENT, status));
  }

  private static long kib(Pattern pattern, String text) throws IOException {
    Matcher matcher = pattern.matcher(text);
    if (!matcher.find()) {
      throw new IOException("no " + pattern + " in " + text);
    }
    return Long.parseLong(matcher.group(1)) * KIB;
  }

  private static String jcmd(long pid, String command) throws IOException {
    String jcmd = Path.of(System.getProperty("java.home"), "bin", "jcmd").toString();
    Process process =
        new ProcessBuilder(jcmd, String.valueOf(pid), command).redirectErrorStream(true).start();
    return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
  }
}
