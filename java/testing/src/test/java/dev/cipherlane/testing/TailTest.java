package dev.cipherlane.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class TailTest {
  @Test
  void keepsAllOfAShortText() {
    assertThat(tailOf("one\ntwo")).isEqualTo("one\ntwo");
  }

  @Test
  void keepsTheEndOfALongText() {
    String text = "start" + "x".repeat(2 * Tail.MAX_CHARS) + "end";

    assertThat(tailOf(text)).hasSize(Tail.MAX_CHARS).startsWith("x").endsWith("xend");
  }

  private static String tailOf(String text) {
    return new Tail(new ByteArrayInputStream(text.getBytes(StandardCharsets.US_ASCII))).all();
  }
}
