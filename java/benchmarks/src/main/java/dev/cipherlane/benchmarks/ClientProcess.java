// A producer's Java machine, driven line by line from the benchmark, and the CPU time that a run
// costs it and the broker.
package dev.cipherlane.benchmarks;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A child process that runs {@link ClientMain}. Not thread-safe. */
final class ClientProcess implements AutoCloseable {
  private static final double NANOS_PER_MICRO = 1_000;
  private static final Pattern THROUGHPUT = Pattern.compile("([0-9.]+) records/sec");

  /** More flags of both producers' Java machines, for profilers. */
  private static final List<String> FLAGS =
      Arrays.stream(System.getProperty("flags", "").split(" ")).filter(f -> !f.isEmpty()).toList();

  private final Process process;
  private final BufferedWriter commands;
  private final BufferedReader answers;

  private ClientProcess(Process process) {
    this.process = process;
    this.commands =
        new BufferedWriter(
            new OutputStreamWriter(process.getOutputStream(), StandardCharsets.UTF_8));
    this.answers =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
  }

  static ClientProcess start(Path properties) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx1g", "-XX:+UseSerialGC"));
    command.addAll(FLAGS);
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.addAll(List.of(ClientMain.class.getName(), properties.toString()));
    Process process =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    return new ClientProcess(process);
  }

  /** Has the client send one case's records, and returns what that cost. */
  BenchKafka.Run run(BenchKafka.Case each, Path payload, long broker) throws IOException {
    double client = cpuNanos(process.pid());
    double server = cpuNanos(broker);
    commands.write(each.topic() + " " + each.records() + " " + payload + "\n");
    commands.flush();
    double throughput = throughput();
    double micros = NANOS_PER_MICRO * each.records();
    return new BenchKafka.Run(
        (cpuNanos(process.pid()) - client) / micros,
        (cpuNanos(broker) - server) / micros,
        throughput);
  }

  /**
   * Reads the client's output up to its mark, and takes the last throughput, which is that of the
   * whole run.
   */
  private double throughput() throws IOException {
    double last = Double.NaN;
    for (String line = answers.readLine(); line != null; line = answers.readLine()) {
      if (line.equals(ClientMain.DONE)) {
        return last;
      }
      Matcher matcher = THROUGHPUT.matcher(line);
      if (matcher.find()) {
        last = Double.parseDouble(matcher.group(1));
      }
    }
    throw new IOException("the client ended early");
  }

  private static double cpuNanos(long pid) throws IOException {
    return ProcessHandle.of(pid)
        .flatMap(handle -> handle.info().totalCpuDuration())
        .orElseThrow(() -> new IOException("process " + pid + " is gone"))
        .toNanos();
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
