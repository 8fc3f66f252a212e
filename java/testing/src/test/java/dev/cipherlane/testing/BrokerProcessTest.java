package dev.cipherlane.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What goes wrong without a broker. With one, it is tested in the module {@code broker}, which
 * makes it.
 */
class BrokerProcessTest {
  private final String jar = System.getProperty(BrokerProcess.JAR_PROPERTY);

  @AfterEach
  void restoreJar() {
    System.setProperty(BrokerProcess.JAR_PROPERTY, jar);
  }

  @Test
  void saysHowToSetTheProperty() {
    System.clearProperty(BrokerProcess.JAR_PROPERTY);

    assertThatThrownBy(BrokerProcess::start)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("cipherlane.broker.jar");
  }

  @Test
  void saysHowToBuildTheJar() {
    System.setProperty(BrokerProcess.JAR_PROPERTY, "no/such.jar");

    assertThatThrownBy(BrokerProcess::start)
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("there is no no/such.jar")
        .hasMessageContaining("make -C java broker");
  }

  @Test
  void saysWhatAChildThatFailsSaid() {
    System.setProperty(BrokerProcess.JAR_PROPERTY, Path.of("pom.xml").toString());

    assertThatThrownBy(BrokerProcess::start)
        .isInstanceOf(IOException.class)
        .hasMessageContaining("exit code 1")
        .hasMessageContaining("Could not find or load main class");
  }

  @Test
  void readsTheReadyLine() throws IOException {
    ReadyLine ready =
        ReadyLine.parse(
            "{\"bootstrap\":\"127.0.0.1:9092\",\"pid\":42,\"dir\":\"/a \\\"b\\\\\\u00E9\\tc\",\"log_dir\":\"/d\"}");

    assertThat(ready)
        .isEqualTo(
            new ReadyLine(
                "127.0.0.1:9092",
                Map.of(),
                42,
                Path.of("/a \"b\\\u00e9\tc"),
                Path.of("/d"),
                List.of()));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "Error: something",
        "{\"bootstrap\":\"b\",\"pid\":1,\"dir\":\"d\"}",
        "{\"bootstrap\":\"b\",\"pid\":\"x\",\"dir\":\"d\",\"log_dir\":\"l\"}",
        "{\"bootstrap\":\"b\",\"pid\":12345678901234567890,\"dir\":\"d\",\"log_dir\":\"l\"}",
        "{\"bootstrap\":[],\"pid\":1,\"dir\":\"d\",\"log_dir\":\"l\"}",
        "{\"bootstrap\":\"b\",\"pid\":1,\"dir\":\"d\",\"log_dir\":\"l",
      })
  void refusesAnotherLine(String line) {
    assertThatThrownBy(() -> ReadyLine.parse(line))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("its answer");
  }
}
