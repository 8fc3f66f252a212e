package dev.cipherlane.broker;

import java.io.IOException;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;

/**
 * Several brokers, each a controller too and each a process of its own, which a test may kill and
 * pause by its id. This process starts them, starts one again when told to on standard input, and
 * ends them when it ends; it does not mind that one ends.
 *
 * <p>Thread-safe in so far as {@link #close()} may come from another thread at any time.
 */
final class Cluster implements Service {
  private static final String START = "start ";

  private final WorkFolder folder;
  private final Options options;
  private final PrintStream stdout;
  private final Map<Integer, List<String>> commands = new TreeMap<>();
  private final Map<Integer, MemberProcess> processes = new TreeMap<>();
  private boolean closed;

  Cluster(WorkFolder folder, Options options, PrintStream stdout) {
    this.folder = folder;
    this.options = options;
    this.stdout = stdout;
  }

  @Override
  public Ready start() throws Exception {
    SortedMap<Integer, Integer> controllers = new TreeMap<>();
    for (int id = 1; id <= options.cluster(); id++) {
      controllers.put(id, FreePort.reserve());
    }
    String clusterId = clusterId();
    for (int id : controllers.keySet()) {
      commands.put(id, command(new Member(id, clusterId, controllers)));
    }
    List<MemberProcess> launched = new ArrayList<>();
    for (int id : controllers.keySet()) {
      launched.add(launch(id));
    }
    List<Ready> nodes = new ArrayList<>();
    for (MemberProcess process : launched) {
      nodes.add(process.awaitReady());
    }
    Ready ready = joined(nodes);
    Topics.create(ready.bootstrap(), nodes.size(), options.topics());
    return ready;
  }

  /** Kept in the folder, so that a cluster that is started again there knows its records. */
  private String clusterId() throws IOException {
    Path file = folder.path().resolve("cluster-id");
    if (!Files.exists(file)) {
      Files.writeString(file, Uuid.randomUuid().toString());
    }
    return Files.readString(file);
  }

  /** The virtual machine's flags and class path are this one's. */
  private List<String> command(Member member) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), Main.class.getName()));
    command.addAll(List.of("--until-stdin-closes", "--member", member.toString()));
    command.addAll(List.of("--dir", folder.path().resolve("node-" + member.id()).toString()));
    command.addAll(List.of("--port", String.valueOf(FreePort.reserve())));
    if (options.autoCreate()) {
      command.add("--auto-create");
    }
    for (Listener listener : options.listeners()) {
      command.addAll(List.of("--listener", listener.placed().toString()));
    }
    options.set().forEach((key, value) -> command.addAll(List.of("--set", key + "=" + value)));
    return command;
  }

  private synchronized MemberProcess launch(int id) throws IOException {
    if (closed) {
      throw new IOException("the cluster is being stopped");
    }
    MemberProcess process = new MemberProcess(id, commands.get(id));
    processes.put(id, process);
    return process;
  }

  private Ready joined(List<Ready> nodes) {
    Map<String, String> listeners = new LinkedHashMap<>();
    for (String name : nodes.get(0).listeners().keySet()) {
      listeners.put(name, join(nodes, node -> node.listeners().get(name)));
    }
    String dir = folder.path().toString();
    long pid = ProcessHandle.current().pid();
    return new Ready(null, join(nodes, Ready::bootstrap), listeners, pid, dir, dir, nodes);
  }

  private static String join(List<Ready> nodes, Function<Ready, String> address) {
    return nodes.stream().map(address).collect(Collectors.joining(","));
  }

  /** Waits for the end of the program, which comes with {@link #close()}. */
  @Override
  public void awaitEnd() throws InterruptedException {
    new CountDownLatch(1).await();
  }

  /**
   * Carries out {@code start ID}: starts a node that has ended again, with its folder and ports,
   * and prints its line of JSON once it answers. Whatever goes wrong is answered too, with {@code
   * {}}.
   */
  @Override
  public void obey(String line) {
    stdout.println(answer(line));
    stdout.flush();
  }

  private String answer(String line) {
    try {
      return restart(line).line();
    } catch (IOException | IllegalArgumentException e) {
      return Ready.error(e.getMessage());
    }
  }

  private Ready restart(String line) throws IOException {
    String id = line.startsWith(START) ? line.substring(START.length()) : "";
    return launchAgain(id.matches("\\d{1,2}") ? Integer.parseInt(id) : 0).awaitReady();
  }

  private synchronized MemberProcess launchAgain(int id) throws IOException {
    if (!processes.containsKey(id)) {
      throw new IllegalArgumentException("is not 'start ID' with the id of a node");
    }
    if (processes.get(id).isAlive()) {
      throw new IllegalArgumentException("that node runs");
    }
    return launch(id);
  }

  /** Ends all at once; those that work in a folder that nobody keeps need no goodbye. */
  @Override
  public void close() {
    List<MemberProcess> all;
    synchronized (this) {
      closed = true;
      all = List.copyOf(processes.values());
    }
    all.forEach(folder.temporary() ? MemberProcess::kill : MemberProcess::stop);
    all.forEach(MemberProcess::awaitEnd);
  }
}
