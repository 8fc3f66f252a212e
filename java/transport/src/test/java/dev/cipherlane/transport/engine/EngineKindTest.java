package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class EngineKindTest {
  @ParameterizedTest
  @EnumSource
  void isReadAsItIsWritten(EngineKind kind) {
    assertThat(EngineKind.of(kind.toString())).isEqualTo(kind);
  }

  @Test
  void hasDashesInItsName() {
    assertThat(EngineKind.JDK_PLAIN).hasToString("jdk-plain");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "JDK", "jdk_plain", "openssl"})
  void refusesOtherNames(String name) {
    assertThatThrownBy(() -> EngineKind.of(name))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("cipherlane.tls.engine must be one of auto, jdk");
  }
}
