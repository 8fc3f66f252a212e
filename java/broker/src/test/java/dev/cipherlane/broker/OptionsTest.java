package dev.cipherlane.broker;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.testing.BrokerProcess;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import net.sourceforge.argparse4j.inf.ArgumentParserException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OptionsTest {
  @Test
  void hasDefaults() throws ArgumentParserException {
    Options options = Options.parse(new String[0]);

    assertThat(options.dir()).isEmpty();
    assertThat(options.port()).isZero();
    assertThat(options.keep() || options.autoCreate() || options.untilStdinCloses()).isFalse();
    assertThat(options.topics()).isEmpty();
    assertThat(options.set()).isEmpty();
    assertThat(options.listeners()).isEmpty();
    assertThat(options.cluster()).isEqualTo(1);
    assertThat(options.member()).isEmpty();
  }

  @Test
  void readsEveryOption() throws ArgumentParserException {
    String line =
        "--dir x/../y --keep --port 65535 --auto-create --until-stdin-closes"
            + " --topics a:1,b:1000 --topics c:2 --set k=v=w --set l=";

    Options options = Options.parse(line.split(" "));

    assertThat(options.dir()).contains(Path.of("y").toAbsolutePath());
    assertThat(options.port()).isEqualTo(65535);
    assertThat(options.keep() && options.autoCreate() && options.untilStdinCloses()).isTrue();
    assertThat(options.topics()).isEqualTo(Map.of("a", 1, "b", 1000, "c", 2));
    assertThat(options.set()).isEqualTo(Map.of("k", "v=w", "l", ""));
  }

  @Test
  void readsThoseOfACluster() throws ArgumentParserException {
    String line = "--cluster 3 --listener TLS:SSL --listener CONTROLLER:SASL_SSL:9093";

    Options options = Options.parse(line.split(" "));
    Options member = Options.parse(new String[] {"--member", "2/x/1@10,2@11"});

    assertThat(options.cluster()).isEqualTo(3);
    assertThat(options.listeners()).hasToString("[TLS:SSL, CONTROLLER:SASL_SSL:9093]");
    assertThat(member.member().orElseThrow()).hasToString("2/x/1@10,2@11");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          --bogus                    | unrecognized
          orders:1                   | unrecognized
          --port                     | expected one argument
          --port 0                   | not a number from 1 to 65535
          --port 65536               | not a number from 1 to 65535
          --port -1                  | not a number from 1 to 65535
          --port 99999999999         | not a number from 1 to 65535
          --dir a,b                  | comma
          --dir                      | expected one argument
          --topics orders            | NAME:PARTITIONS
          --topics orders:           | not a number from 1 to 1000
          --topics orders:0          | not a number from 1 to 1000
          --topics orders:1001       | not a number from 1 to 1000
          --topics orders:1:2        | NAME:PARTITIONS
          --topics a:1,              | NAME:PARTITIONS
          --topics :1                | not the name of a topic
          --topics ..:1              | not the name of a topic
          --topics a/b:1             | not the name of a topic
          --topics a:1,a:2           | given twice
          --topics a:1 --topics a:1  | given twice
          --set log.retention.hours  | KEY=VALUE
          --set =v                   | KEY=VALUE
          --set node.id=2            | set by this program
          --set k=v --set k=w        | given twice
          --set listeners=A://:1     | set by this program
          --cluster 0                | not a number from 1 to 9
          --cluster 10               | not a number from 1 to 9
          --cluster 3 --port 9092    | for one broker
          --listener TLS             | NAME:PROTOCOL
          --listener tls:SSL         | NAME:PROTOCOL
          --listener TLS:SSL:1:2     | NAME:PROTOCOL
          --listener PLAINTEXT:SSL   | always there
          --listener TLS:TLS         | none of
          --listener TLS:SSL:0       | not a number from 1 to 65535
          --member 1                 | ID/CLUSTER/CONTROLLERS
          --member 1/x/2@3           | no controller for node 1
          --member 1/x/a@b           | input string
          """)
  void refuses(String line, String why) {
    assertThatThrownBy(() -> Options.parse(line.split(" ")))
        .isInstanceOf(ArgumentParserException.class)
        .hasMessageContaining(why);
  }

  @Test
  void aBadOptionEndsTheProgramWithCode2AndAMessage() {
    assertThatThrownBy(() -> BrokerProcess.start("--port", "0"))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("exit code 2")
        .hasMessageContaining("usage: cipherlane-broker");
  }
}
