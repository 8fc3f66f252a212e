package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * CPU time of a process so far, in nanoseconds, as the operating system counts it.
 *
 * @param work all of it but for compiling
 * @param compiling by the Java machine's compilers, which is no cost of a record: it ends. On Linux
 *     only; elsewhere 0, and part of {@code work}
 */
record Cpu(double work, double compiling) {
  /** For each Java machine: compilers that end would take their figures along. */
  static final List<String> FLAGS = List.of("-XX:-UseDynamicNumberOfCompilerThreads");

  private static final Path PROCESSES = Path.of("/proc");
  private static final String COMPILER = "CompilerThre";
  private static final double NANOS_PER_TICK = 1e9 / 100;
  private static final int USER_TICKS = 11;

  static Cpu of(long pid) throws IOException {
    double all =
        ProcessHandle.of(pid)
            .flatMap(handle -> handle.info().totalCpuDuration())
            .orElseThrow(() -> new IOException("process " + pid + " is gone"))
            .toNanos();
    double compiling = compiling(PROCESSES.resolve(pid + "/task"));
    return new Cpu(all - compiling, compiling);
  }

  /** Of all of them together. */
  static Cpu of(Iterable<Long> pids) throws IOException {
    Cpu sum = new Cpu(0, 0);
    for (long pid : pids) {
      Cpu one = of(pid);
      sum = new Cpu(sum.work + one.work, sum.compiling + one.compiling);
    }
    return sum;
  }

  Cpu since(Cpu earlier) {
    return new Cpu(work - earlier.work, compiling - earlier.compiling);
  }

  private static double compiling(Path threads) throws IOException {
    if (!Files.isDirectory(threads)) {
      return 0;
    }
    double nanos = 0;
    try (Stream<Path> all = Files.list(threads)) {
      for (Path thread : all.toList()) {
        nanos += compilerNanos(thread);
      }
    }
    return nanos;
  }

  private static double compilerNanos(Path thread) throws IOException {
    String stat;
    try {
      stat = Files.readString(thread.resolve("stat"));
    } catch (IOException e) {
      return 0; // It ended meanwhile, so it was no compiler.
    }
    // The name stands in brackets and may have spaces; the fields that count follow.
    int name = stat.lastIndexOf(')');
    if (!stat.substring(0, name).contains(COMPILER)) {
      return 0;
    }
    String[] fields = stat.substring(name + 2).split(" ", -1);
    return NANOS_PER_TICK
        * (Long.parseLong(fields[USER_TICKS]) + Long.parseLong(fields[USER_TICKS + 1]));
  }
}
