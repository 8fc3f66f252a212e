package dev.cipherlane.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.testing.SegmentScanner.Hit;
import dev.cipherlane.testing.SegmentScanner.Report;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SegmentScannerTest {
  private static final byte[] CANARY = bytes("canary-0123456789abcdef");
  private static final int BLOCK = 1024 * 1024;

  @TempDir Path folder;

  @Test
  void findsEveryPatternInEveryFileBelowTheFolder() throws IOException {
    Path a = write("topic-0/00000000000000000000.log", "..canary-0123456789abcdef..");
    Path b = write("deep/er/any.name", "abcdefgh");

    Report report = scan(CANARY, bytes("abcdefgh"));

    assertThat(report.hits()).containsExactlyInAnyOrder(new Hit(a, 2, 0), new Hit(b, 0, 1));
    assertThat(report.files()).isEqualTo(2);
    assertThat(report.bytes()).isEqualTo(27 + 8);
  }

  @Test
  void findsOverlappingOccurrencesAndPatternsWithACommonStart() throws IOException {
    Path file = write("a.log", "aaaaaaaaab");

    Report report = scan(bytes("aaaaaaaa"), bytes("aaaaaaaab"));

    assertThat(report.hits())
        .containsExactlyInAnyOrder(new Hit(file, 0, 0), new Hit(file, 1, 0), new Hit(file, 1, 1));
  }

  /**
   * Around the borders of the scanner's blocks, and at the end of a file that is exactly one or two
   * blocks long.
   */
  @ParameterizedTest
  @ValueSource(
      ints = {0, 1, BLOCK - 30, BLOCK - 23, BLOCK - 22, BLOCK - 11, BLOCK - 1, BLOCK, BLOCK + 1})
  void findsAPatternOnceWhereverItStands(int offset) throws IOException {
    for (int size : new int[] {offset + CANARY.length, 2 * BLOCK, 2 * BLOCK + 7}) {
      byte[] content = new byte[size];
      System.arraycopy(CANARY, 0, content, offset, CANARY.length);
      Path file = Files.write(folder.resolve("a.log"), content);

      Report report = scan(CANARY, new byte[] {1, 2, 3, 4, 5, 6, 7, 8});

      assertThat(report.hits()).containsExactly(new Hit(file, offset, 0));
      assertThat(report.bytes()).isEqualTo(size);
    }
  }

  @Test
  void findsNothingInWhatDiffersInOneByte() throws IOException {
    write("a.log", "canary-0123456789abcdeF canary-0123456789abcde");
    write("b.log", "");

    Report report = scan(CANARY);

    assertThat(report.hits()).isEmpty();
    assertThat(report.files()).isEqualTo(2);
  }

  @Test
  void doesNotSeeLaterChangesOfThePattern() throws IOException {
    write("a.log", "canary-0123456789abcdef");
    byte[] pattern = CANARY.clone();
    SegmentScanner scanner = new SegmentScanner(List.of(pattern));

    pattern[0] = 0;

    assertThat(scanner.scan(folder).hits()).hasSize(1);
  }

  @Test
  void refusesAFolderThatDoesNotExist() {
    Path missing = folder.resolve("missing");

    assertThatThrownBy(() -> new SegmentScanner(List.of(CANARY)).scan(missing))
        .isInstanceOf(NotDirectoryException.class)
        .hasMessageContaining("missing");
  }

  @Test
  void refusesToSearchForNothing() {
    assertThatThrownBy(() -> new SegmentScanner(List.of()))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, SegmentScanner.MIN_PATTERN - 1, SegmentScanner.MAX_PATTERN + 1})
  void refusesPatternsThatAreTooShortOrTooLong(int length) {
    List<byte[]> patterns = List.of(CANARY, new byte[length]);

    assertThatThrownBy(() -> new SegmentScanner(patterns))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("has " + length + " bytes");
  }

  private Report scan(byte[]... patterns) throws IOException {
    return new SegmentScanner(List.of(patterns)).scan(folder);
  }

  private Path write(String name, String content) throws IOException {
    Path file = folder.resolve(name);
    Files.createDirectories(file.getParent());
    return Files.write(file, bytes(content));
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
