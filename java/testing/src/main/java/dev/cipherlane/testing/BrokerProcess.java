package dev.cipherlane.testing;

import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * A real Kafka broker as a child process, for tests: {@code try (var broker =
 * BrokerProcess.start()) { ... }}; or a cluster of them, with {@code start("--cluster", "3")}.
 *
 * <p>It runs the jar of the module {@code broker}, found through the system property {@value
 * #JAR_PROPERTY}, in a Java virtual machine of its own, so that no class of the server reaches the
 * class path of the test. The child ends when this process does, however that comes about.
 *
 * <p>Thread-safe.
 */
public final class BrokerProcess implements AutoCloseable {
  /** System property with the path of the broker's jar; the parent POM sets it for every test. */
  public static final String JAR_PROPERTY = "cipherlane.broker.jar";

  private static final String MAIN = "dev.cipherlane.broker.Main";
  private static final int START_SECONDS = 120;
  private static final int STOP_SECONDS = 30;
  private static final List<String> JVM_FLAGS =
      List.of("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1");

  private final Process process;
  private final Tail stderr;
  private final ReadyLine ready;
  private final Map<Integer, Node> nodes = new TreeMap<>();

  private BrokerProcess(Process process, Tail stderr, ReadyLine ready) {
    this.process = process;
    this.stderr = stderr;
    this.ready = ready;
    for (ReadyLine node : ready.nodes()) {
      nodes.put(nodes.size() + 1, Node.of(nodes.size() + 1, node));
    }
  }

  /**
   * One broker of a cluster.
   *
   * @param id from 1
   * @param bootstrap its address for clients
   * @param pid of its process
   * @param logDir where it stores records
   */
  public record Node(int id, String bootstrap, long pid, Path logDir) {
    private static Node of(int id, ReadyLine ready) {
      return new Node(id, ready.bootstrap(), ready.pid(), ready.logDir());
    }
  }

  /**
   * Starts a broker with flags that suit tests: a small heap, and a quick start rather than speed.
   *
   * @param options of the broker, for example {@code "--topics", "orders:3"}; its {@code --help}
   *     lists them
   * @return the broker, which answers clients
   * @throws IllegalStateException if the jar has not been built
   * @throws IOException if it does not start within 120 seconds; the message has its standard error
   */
  public static BrokerProcess start(String... options) throws IOException {
    return start(JVM_FLAGS, List.of(options));
  }

  /**
   * Starts a broker with the flags given for its Java virtual machine.
   *
   * @param jvmFlags for example {@code -Xmx1g}
   * @param options of the broker, for example {@code "--topics", "orders:3"}; its {@code --help}
   *     lists them
   * @return the broker, which answers clients
   * @throws IllegalStateException if the jar has not been built
   * @throws IOException if it does not start within 120 seconds; the message has its standard error
   */
  public static BrokerProcess start(List<String> jvmFlags, List<String> options)
      throws IOException {
    return start(List.of(), jvmFlags, options);
  }

  /**
   * Starts a broker with plug-ins of Kafka on its class path.
   *
   * @param plugins jars and folders of classes
   * @param jvmFlags for example {@code -Xmx1g}
   * @param options of the broker; its {@code --help} lists them
   * @return the broker, which answers clients
   * @throws IllegalStateException if the jar has not been built
   * @throws IOException if it does not start within 120 seconds; the message has its standard error
   */
  public static BrokerProcess start(List<Path> plugins, List<String> jvmFlags, List<String> options)
      throws IOException {
    List<String> command = command(plugins, jvmFlags, options);
    Process process = new ProcessBuilder(command).start();
    Tail stderr = new Tail(process.getErrorStream());
    try {
      return new BrokerProcess(process, stderr, ReadyLine.parse(firstLine(process)));
    } catch (IOException e) {
      stop(process);
      throw new IOException("the broker did not start: " + e.getMessage() + "\n" + stderr.all(), e);
    }
  }

  private static List<String> command(
      List<Path> plugins, List<String> jvmFlags, List<String> options) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.add("-Djava.io.tmpdir=" + System.getProperty("java.io.tmpdir"));
    command.addAll(jvmFlags);
    String classPath =
        Stream.concat(Stream.of(jar()), plugins.stream())
            .map(Path::toString)
            .collect(Collectors.joining(File.pathSeparator));
    command.addAll(List.of("-cp", classPath, MAIN, "--until-stdin-closes"));
    command.addAll(options);
    return command;
  }

  private static Path jar() {
    String jar = System.getProperty(JAR_PROPERTY);
    if (jar == null) {
      throw new IllegalStateException(
          "the system property "
              + JAR_PROPERTY
              + " must name the broker's jar; `make -C java broker` builds it");
    }
    if (!Files.isRegularFile(Path.of(jar))) {
      throw new IllegalStateException("there is no " + jar + "; `make -C java broker` builds it");
    }
    return Path.of(jar);
  }

  private static String firstLine(Process process) throws IOException {
    CompletableFuture<String> line = CompletableFuture.supplyAsync(() -> readLine(process));
    try {
      return line.orTimeout(START_SECONDS, TimeUnit.SECONDS).join();
    } catch (CompletionException e) {
      if (e.getCause() instanceof TimeoutException) {
        throw new IOException("no answer within " + START_SECONDS + " s", e);
      }
      throw new IOException(e.getCause().getMessage(), e);
    }
  }

  private static String readLine(Process process) {
    try {
      String line = process.inputReader(StandardCharsets.US_ASCII).readLine();
      if (line == null) {
        throw new IOException("it ended with exit code " + process.waitFor());
      }
      return line;
    } catch (IOException e) {
      throw new UncheckedIOException(e.getMessage(), e);
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  /**
   * Tells where clients connect.
   *
   * @return the value for {@code bootstrap.servers}
   */
  public String bootstrap() {
    return ready.bootstrap();
  }

  /**
   * Tells where clients connect to another listener than the one in plaintext.
   *
   * @param name as in {@code --listener NAME:PROTOCOL}
   * @return the value for {@code bootstrap.servers}
   * @throws IllegalArgumentException if the broker was not started with that listener
   */
  public String bootstrap(String name) {
    if (!ready.listeners().containsKey(name)) {
      throw new IllegalArgumentException(
          "no listener " + name + " among " + ready.listeners().keySet());
    }
    return ready.listeners().get(name);
  }

  /**
   * Lists the brokers of a cluster, as they are now: one that was started again has another id of
   * its process.
   *
   * @return in the order of their ids; empty if this was not started with {@code --cluster}
   */
  public synchronized List<Node> nodes() {
    return List.copyOf(nodes.values());
  }

  /**
   * Ends one broker of a cluster as a crash would; {@link #startNode} starts it again.
   *
   * @param id of the node
   */
  public void killNode(int id) {
    ProcessHandle node = handle(id);
    node.destroyForcibly();
    node.onExit().join();
  }

  /**
   * Stops one broker of a cluster from doing anything, while its connections stay open, until
   * {@link #resumeNode}.
   *
   * @param id of the node
   * @throws IOException if that cannot be done
   */
  public void pauseNode(int id) throws IOException {
    signal("-STOP", id);
  }

  /**
   * Lets a paused broker go on.
   *
   * @param id of the node
   * @throws IOException if that cannot be done
   */
  public void resumeNode(int id) throws IOException {
    signal("-CONT", id);
  }

  /**
   * Starts one broker of a cluster again, with its folder and ports, after {@link #killNode}.
   *
   * @param id of the node
   * @throws IOException if it does not start; the message has the standard error of the cluster
   */
  public synchronized void startNode(int id) throws IOException {
    node(id);
    process.outputWriter(StandardCharsets.US_ASCII).append("start " + id + "\n").flush();
    String line = firstLine(process);
    if (line.startsWith("{\"error\"")) {
      throw new IOException("node " + id + " did not start: " + line + "\n" + stderr.soFar());
    }
    nodes.put(id, Node.of(id, ReadyLine.parse(line)));
  }

  private void signal(String signal, int id) throws IOException {
    String pid = String.valueOf(node(id).pid());
    try {
      if (new ProcessBuilder("kill", signal, pid).start().waitFor() != 0) {
        throw new IOException("kill " + signal + " " + pid + " failed");
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    }
  }

  private ProcessHandle handle(int id) {
    return ProcessHandle.of(node(id).pid())
        .orElseThrow(() -> new IllegalStateException("node " + id + " does not run"));
  }

  private synchronized Node node(int id) {
    if (!nodes.containsKey(id)) {
      throw new IllegalArgumentException("no node " + id + " among " + nodes.keySet());
    }
    return nodes.get(id);
  }

  /**
   * Tells the broker's process id.
   *
   * @return the id, as the operating system knows it
   */
  public long pid() {
    return ready.pid();
  }

  /**
   * Tells the broker's working folder, which it deletes when it ends unless started with {@code
   * --keep} or {@code --dir}.
   *
   * @return the folder
   */
  public Path dir() {
    return ready.dir();
  }

  /**
   * Tells where the broker stores records: the folder to scan.
   *
   * @return the folder, one folder per partition in it
   */
  public Path logDir() {
    return ready.logDir();
  }

  /**
   * Lists the log segments, which hold the records.
   *
   * <p>A record is in its file as soon as the broker has acknowledged it: Kafka appends by writing
   * to the file, and every process of this machine reads what was written, whether it was flushed
   * to the disk or not. So scan after {@code send().get()} or {@code flush()}; there is nothing
   * else to wait for. (Only a crash of the machine itself would lose what was not flushed.)
   *
   * @return the paths of all {@code *.log} files below {@link #logDir()}
   * @throws IOException if the folder cannot be read
   */
  public List<Path> segments() throws IOException {
    try (Stream<Path> files = Files.walk(logDir())) {
      return files.filter(file -> file.toString().endsWith(".log")).toList();
    }
  }

  /**
   * Gives what the broker has written to its standard error: warnings and errors.
   *
   * @return the text, empty if all is well; of a long one the last 64 KiB
   */
  public String stderr() {
    return stderr.soFar();
  }

  /**
   * Stops the broker as a crash would: nothing is flushed or tidied, its folder stays. {@link
   * #close()} must follow. A broker started again in that folder takes some ten seconds longer,
   * until the old one's session has expired.
   *
   * @throws InterruptedException if interrupted while waiting for its end
   */
  public void kill() throws InterruptedException {
    process.destroyForcibly().waitFor();
  }

  /**
   * Stops the broker gracefully, and by force if it has not ended after 30 seconds. Calling it
   * again does nothing.
   *
   * @throws IOException if the broker's standard input cannot be closed
   */
  @Override
  public void close() throws IOException {
    stop(process);
  }

  private static void stop(Process process) throws IOException {
    process.getOutputStream().close();
    try {
      if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly().waitFor();
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
