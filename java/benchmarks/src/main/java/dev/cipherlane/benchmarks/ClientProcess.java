// A client's Java machine, driven line by line from the benchmark, and the CPU time that a run
// costs it and the brokers.
package dev.cipherlane.benchmarks;

import com.google.gson.Gson;
import com.google.gson.reflect.TypeToken;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * A child process that runs {@link ClientMain}, with the flags of Kafka's own scripts for such
 * programs. Not thread-safe.
 */
final class ClientProcess implements AutoCloseable {
  private static final Gson JSON = new Gson();
  private static final TypeToken<Map<String, Double>> FIGURES = new TypeToken<>() {};
  private static final double NANOS_PER_MICRO = 1_000;
  private static final double NANOS_PER_SECOND = 1e9;

  /** More flags of both producers' Java machines, for profilers. */
  private static final List<String> FLAGS =
      Arrays.stream(System.getProperty("flags", "").split(" ")).filter(f -> !f.isEmpty()).toList();

  /** Whether clients are to go without Amazon's provider of AES-GCM. */
  private static final boolean RUNTIME_GCM = "runtime".equals(System.getProperty("gcm"));

  private final Process process;
  private final BufferedWriter commands;
  private final BufferedReader answers;
  private final List<Long> brokers;
  private Map<String, Double> figures = Map.of();

  private ClientProcess(Process process, List<Long> brokers) {
    this.process = process;
    this.brokers = brokers;
    this.commands =
        new BufferedWriter(
            new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8));
    this.answers =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
  }

  static ClientProcess start(long broker) throws IOException {
    return start(List.of(broker), "512m");
  }

  /**
   * Starts a client.
   *
   * @param brokers processes of the brokers that work for it
   * @param heap of its Java machine, for example 512m
   */
  static ClientProcess start(List<Long> brokers, String heap) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xms" + heap, "-Xmx" + heap, "-XX:+UseG1GC"));
    command.addAll(Cpu.FLAGS);
    command.addAll(FLAGS);
    command.addAll(List.of("-cp", classPath()));
    command.add(ClientMain.class.getName());
    Process process =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    return new ClientProcess(process, brokers);
  }

  private static String classPath() {
    return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
        .filter(jar -> !(RUNTIME_GCM && jar.contains("AmazonCorrettoCryptoProvider")))
        .collect(Collectors.joining(File.pathSeparator));
  }

  /** Has the client do one run, and returns what that cost. */
  BenchKafka.Run run(String command, int records) throws IOException {
    Cpu client = Cpu.of(process.pid());
    Cpu server = Cpu.of(brokers);
    long begin = System.nanoTime();
    tell(command);
    double seconds = (System.nanoTime() - begin) / NANOS_PER_SECOND;
    double micros = NANOS_PER_MICRO * records;
    client = Cpu.of(process.pid()).since(client);
    server = Cpu.of(brokers).since(server);
    return new BenchKafka.Run(
        client.work() / micros,
        server.work() / micros,
        client.compiling() / micros,
        records / seconds);
  }

  /** Has the client do something that is not measured here; see {@link ClientMain}. */
  void tell(String command) throws IOException {
    commands.write(command + "\n");
    commands.flush();
    figures = awaitDone();
  }

  /** What the client itself measured in its last run. */
  Map<String, Double> figures() {
    return figures;
  }

  private Map<String, Double> awaitDone() throws IOException {
    for (String line = answers.readLine(); line != null; line = answers.readLine()) {
      if (line.startsWith(ClientMain.DONE)) {
        return JSON.fromJson(line.substring(ClientMain.DONE.length()), FIGURES);
      }
    }
    throw new IOException("the client ended early");
  }

  @Override
  public void close() throws IOException {
    try {
      commands.close();
      process.waitFor();
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
