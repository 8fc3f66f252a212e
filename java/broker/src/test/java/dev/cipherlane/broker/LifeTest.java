package dev.cipherlane.broker;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.testing.BrokerProcess;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** How a broker starts and ends, and what it leaves behind: nothing, unless told to. */
@Timeout(120)
class LifeTest {
  @TempDir Path temp;

  @Test
  void leavesNothingBehind() throws Exception {
    BrokerProcess broker = BrokerProcess.start("--topics", "orders:1");
    assertThat(broker.dir())
        .isDirectory()
        .startsWith(Path.of(System.getProperty("java.io.tmpdir")));
    assertThat(broker.logDir()).isDirectory().startsWith(broker.dir());
    assertThat(ProcessHandle.of(broker.pid())).isPresent();
    assertThat(broker.stderr()).isEmpty();

    broker.close();
    broker.close();

    assertGone(broker.pid(), broker.dir());
    bind(port(broker)).close();
  }

  @Test
  void endsWhenItsParentIsKilled() throws Exception {
    Process parent =
        command(List.of("-cp", System.getProperty("java.class.path"), Parent.class.getName()))
            .start();
    try {
      String[] told = parent.inputReader().readLine().split(" ", 2);
      ProcessHandle broker = ProcessHandle.of(Long.parseLong(told[0])).orElseThrow();

      parent.destroyForcibly().waitFor();

      broker.onExit().get(30, TimeUnit.SECONDS);
      assertGone(broker.pid(), Path.of(told[1]));
    } finally {
      parent.destroyForcibly();
    }
  }

  /** What {@link #endsWhenItsParentIsKilled} kills. */
  static final class Parent {
    private Parent() {}

    @SuppressWarnings(
        "resource") // it is killed before it could close the broker: that is the point
    public static void main(String[] args) throws Exception {
      BrokerProcess broker = BrokerProcess.start();
      System.out.println(broker.pid() + " " + broker.dir());
      Thread.sleep(TimeUnit.MINUTES.toMillis(2));
    }
  }

  @Test
  void endsOnSigtermWithOneLineOnStandardOutput() throws Exception {
    Process process =
        command(List.of("-Xmx512m", "-jar", System.getProperty(BrokerProcess.JAR_PROPERTY)))
            .start();
    var stdout = process.inputReader();
    String line = stdout.readLine();
    assertThat(line).startsWith("{\"bootstrap\":\"127.0.0.1:").endsWith("}");
    Path dir = Path.of(line.replaceFirst(".*\"dir\":\"([^\"]*)\".*", "$1"));
    assertThat(dir).isDirectory();

    process.toHandle().destroy(); // SIGTERM; Process.destroy() would close its standard output too

    assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).isEqualTo(143);
    assertThat(stdout.readLine()).isNull();
    assertGone(process.pid(), dir);
  }

  @Test
  void endsWhenStandardInputIsClosedBeforeItIsReady() throws Exception {
    Process process =
        command(
                List.of(
                    "-Djava.io.tmpdir=" + temp,
                    "-jar",
                    System.getProperty(BrokerProcess.JAR_PROPERTY),
                    "--until-stdin-closes"))
            .start();
    process.getOutputStream().close();

    assertThat(process.waitFor(30, TimeUnit.SECONDS)).isTrue();

    assertThat(process.exitValue()).isZero();
    assertThat(process.inputReader().readLine()).isNull();
    assertThat(temp).isEmptyDirectory();
  }

  @Test
  void keepsItsFolderAndRecordsFromRunToRun() throws Exception {
    Path dir = temp.resolve("a \"quoted\" \\ folder\u00e9");
    BrokerProcess first = BrokerProcess.start("--dir", dir.toString(), "--topics", "orders:1");
    String port = String.valueOf(port(first));
    Clients.produce(first.bootstrap(), "orders", "kept");
    first.close();
    BrokerProcess second =
        BrokerProcess.start("--dir", dir.toString(), "--port", port, "--topics", "orders:1");
    try (second) {
      assertThat(second.dir()).isEqualTo(dir);
      assertThat(second.bootstrap()).isEqualTo(first.bootstrap());
      assertThat(Clients.consume(second.bootstrap(), "orders", 1)).containsExactly("kept");
    }
    assertThat(dir.resolve("data")).isDirectory();
  }

  @Test
  void survivesACrash() throws Exception {
    BrokerProcess first = BrokerProcess.start("--dir", temp.toString(), "--topics", "orders:1");
    Clients.produce(first.bootstrap(), "orders", "acknowledged");
    first.kill();
    first.close();

    try (BrokerProcess second = BrokerProcess.start("--dir", temp.toString())) {
      assertThat(Clients.consume(second.bootstrap(), "orders", 1)).containsExactly("acknowledged");
    }
  }

  @Test
  void keepsATemporaryFolderIfAsked() throws Exception {
    BrokerProcess broker =
        BrokerProcess.start(
            List.of("-Xmx512m", "-Djava.io.tmpdir=" + temp), List.of("--keep", "--auto-create"));
    Clients.produce(broker.bootstrap(), "made-by-use", "x");
    broker.close();

    assertThat(broker.dir()).startsWith(temp).isDirectoryContaining("glob:**/broker.log");
    assertThat(Files.readString(broker.dir().resolve("broker.log")))
        .contains("shut down completed");
  }

  @Test
  void saysThatAPortIsTaken() throws Exception {
    try (ServerSocket taken = bind(0)) {
      String port = String.valueOf(taken.getLocalPort());

      assertThatThrownBy(
              () ->
                  BrokerProcess.start(
                      List.of("-Xmx512m", "-Djava.io.tmpdir=" + temp), List.of("--port", port)))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("exit code 1")
          .hasMessageContaining("127.0.0.1:" + port)
          .hasMessageContaining("Address already in use");
    }
    assertThat(temp).isEmptyDirectory();
  }

  @Test
  void refusesAFolderThatAnotherBrokerUses() throws Exception {
    BrokerProcess broker = BrokerProcess.start("--topics", "orders:1");
    try (broker) {
      assertThatThrownBy(() -> BrokerProcess.start("--dir", broker.dir().toString()))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("exit code 1")
          .hasMessageContaining("another broker is working in " + broker.dir());
      Clients.produce(broker.bootstrap(), "orders", "undisturbed");
    }
    assertGone(broker.pid(), broker.dir());
  }

  private static ProcessBuilder command(List<String> args) {
    ProcessBuilder builder =
        new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    builder
        .command()
        .add(
            "-D"
                + BrokerProcess.JAR_PROPERTY
                + "="
                + System.getProperty(BrokerProcess.JAR_PROPERTY));
    builder.command().addAll(args);
    return builder.redirectError(ProcessBuilder.Redirect.DISCARD);
  }

  private static void assertGone(long pid, Path dir) {
    assertThat(ProcessHandle.of(pid).filter(ProcessHandle::isAlive)).isEmpty();
    assertThat(dir).doesNotExist();
  }

  private static int port(BrokerProcess broker) {
    return Integer.parseInt(broker.bootstrap().substring("127.0.0.1:".length()));
  }

  private static ServerSocket bind(int port) throws IOException {
    return new ServerSocket(port, 1, InetAddress.getByAddress(new byte[] {127, 0, 0, 1}));
  }
}
