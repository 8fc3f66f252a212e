package dev.cipherlane.testing;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Searches everything a broker has stored for byte sequences that must not be there.
 *
 * <p>It compares raw bytes and understands no Kafka format: a record in a batch that the producer
 * compressed is not found. Produce with {@code compression.type=none} where the absence of a hit is
 * to prove anything.
 *
 * <p>Immutable and thread-safe.
 */
public final class SegmentScanner {
  /** Shorter patterns, in bytes, are refused: they would be met by chance. */
  public static final int MIN_PATTERN = 8;

  /** Longer patterns, in bytes, are refused. */
  public static final int MAX_PATTERN = 64 * 1024;

  private static final int BUFFER = 1024 * 1024;
  private static final int MAX_ATTEMPTS = 5;

  /**
   * One place where a pattern stands.
   *
   * @param file the file
   * @param offset of the pattern's first byte in the file, in bytes
   * @param pattern index of the pattern in the collection the scanner was made with
   */
  public record Hit(Path file, long offset, int pattern) {}

  /**
   * What a scan saw. Check {@code bytes} too: a scan that read nothing proves nothing.
   *
   * @param files number of files read
   * @param bytes number of bytes read
   * @param hits every hit, in no particular order of files
   */
  public record Report(int files, long bytes, List<Hit> hits) {}

  private final List<byte[]> patterns = new ArrayList<>();
  private final Map<Integer, List<Integer>> patternsByFirstFourBytes = new HashMap<>();

  /** By first and second byte: settles nearly every position without a look into the map. */
  private final boolean[][] someStartWith = new boolean[256][256];

  private final int longest;

  /**
   * Makes a scanner for the given byte sequences, which are copied.
   *
   * @param patterns at least one, each of {@link #MIN_PATTERN} to {@link #MAX_PATTERN} bytes
   * @throws IllegalArgumentException if there is none, or one of another length
   */
  public SegmentScanner(Collection<byte[]> patterns) {
    if (patterns.isEmpty()) {
      throw new IllegalArgumentException("no pattern to search for");
    }
    patterns.forEach(this::add);
    longest = this.patterns.stream().mapToInt(p -> p.length).max().getAsInt();
  }

  private void add(byte[] pattern) {
    if (pattern.length < MIN_PATTERN || pattern.length > MAX_PATTERN) {
      throw new IllegalArgumentException(
          "a pattern has "
              + pattern.length
              + " bytes, allowed are "
              + MIN_PATTERN
              + " to "
              + MAX_PATTERN);
    }
    int prefix = ByteBuffer.wrap(pattern).getInt();
    patternsByFirstFourBytes.computeIfAbsent(prefix, k -> new ArrayList<>()).add(patterns.size());
    someStartWith[pattern[0] & 0xff][pattern[1] & 0xff] = true;
    patterns.add(pattern.clone());
  }

  /**
   * Searches every regular file below a folder, whatever its name. The broker may be running:
   * should it move a segment away meanwhile, the search begins again, for what was not read proves
   * nothing.
   *
   * @param folder for example {@link BrokerProcess#logDir()}
   * @return what was read and found
   * @throws NotDirectoryException if {@code folder} is not a folder
   * @throws IOException if a file cannot be read
   */
  public Report scan(Path folder) throws IOException {
    if (!Files.isDirectory(folder)) {
      throw new NotDirectoryException(folder.toString());
    }
    for (int attempt = 1; ; attempt++) {
      try {
        return scanOnce(folder);
      } catch (NoSuchFileException e) {
        if (attempt == MAX_ATTEMPTS) {
          throw e;
        }
      }
    }
  }

  private Report scanOnce(Path folder) throws IOException {
    List<Path> files;
    try (Stream<Path> walk = Files.walk(folder)) {
      files = walk.filter(Files::isRegularFile).toList();
    }
    List<Hit> hits = new ArrayList<>();
    int read = 0;
    long bytes = 0;
    for (Path file : files) {
      long size = scanFile(file, hits);
      if (size >= 0) {
        read++;
        bytes += size;
      }
    }
    return new Report(read, bytes, List.copyOf(hits));
  }

  /**
   * Returns the bytes read, or -1 if the file has gone: a broker replaces its checkpoints all the
   * time.
   */
  private long scanFile(Path file, List<Hit> hits) throws IOException {
    try (InputStream in = Files.newInputStream(file)) {
      return scanStream(in, file, hits);
    } catch (NoSuchFileException e) {
      if (file.toString().endsWith(".log")) {
        throw e;
      }
      return -1;
    }
  }

  /**
   * Reads block by block. The end of a block, one byte short of the longest pattern, is kept and
   * searched with the next one, so that a pattern across the border is found, and found once.
   */
  private long scanStream(InputStream in, Path file, List<Hit> hits) throws IOException {
    byte[] buffer = new byte[BUFFER + longest - 1];
    long offset = 0;
    int kept = 0;
    while (true) {
      int read = in.readNBytes(buffer, kept, BUFFER);
      int end = kept + read;
      int searched = read < BUFFER ? end : end - (longest - 1);
      for (int at = 0; at < searched && at + MIN_PATTERN <= end; at++) {
        for (int pattern : patternsAt(buffer, at, end)) {
          hits.add(new Hit(file, offset + at, pattern));
        }
      }
      if (read < BUFFER) {
        return offset + end;
      }
      kept = end - searched;
      System.arraycopy(buffer, searched, buffer, 0, kept);
      offset += searched;
    }
  }

  private List<Integer> patternsAt(byte[] buffer, int at, int end) {
    if (!someStartWith[buffer[at] & 0xff][buffer[at + 1] & 0xff]) {
      return List.of();
    }
    int prefix = ByteBuffer.wrap(buffer, at, Integer.BYTES).getInt();
    return patternsByFirstFourBytes.getOrDefault(prefix, List.of()).stream()
        .filter(i -> matches(patterns.get(i), buffer, at, end))
        .toList();
  }

  private static boolean matches(byte[] pattern, byte[] buffer, int at, int end) {
    return end - at >= pattern.length
        && Arrays.equals(buffer, at, at + pattern.length, pattern, 0, pattern.length);
  }
}
