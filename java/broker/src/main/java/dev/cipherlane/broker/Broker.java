package dev.cipherlane.broker;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.common.utils.Time;

/**
 * One Kafka broker and controller in this process, by itself or one of a cluster. It is the server
 * that {@code kafka.Kafka} runs, without that class's handling of arguments and signals.
 *
 * <p>Thread-safe in so far as {@link #close()} may come from another thread at any time.
 */
final class Broker implements Service {
  private static final int STOP_SECONDS = 20;

  private final WorkFolder folder;
  private final Options options;
  private volatile KafkaRaftServer server;

  Broker(WorkFolder folder, Options options) {
    this.folder = folder;
    this.options = options;
  }

  @Override
  public Ready start() throws Exception {
    Member member = options.member().isPresent() ? options.member().get() : Member.alone();
    String address = "127.0.0.1:" + (options.port() == 0 ? FreePort.reserve() : options.port());
    List<Listener> listeners = new ArrayList<>();
    Map<String, String> addresses = new LinkedHashMap<>();
    for (Listener listener : options.listeners()) {
      Listener placed = listener.placed();
      listeners.add(placed);
      if (placed.forClients()) {
        addresses.put(placed.name(), placed.address());
      }
    }
    Properties settings = Settings.of(options, member, address, listeners, folder.logDir());
    try (OutputStream out = Files.newOutputStream(folder.settingsFile())) {
      settings.store(out, "written anew at every start");
    }
    format(member.clusterId());
    server = new KafkaRaftServer(KafkaConfig.fromProps(settings), Time.SYSTEM);
    server.startup();
    Topics.create(address, 1, options.topics());
    return new Ready(
        options.member().map(Member::id).orElse(null),
        address,
        addresses,
        ProcessHandle.current().pid(),
        folder.path().toString(),
        folder.logDir().toString(),
        List.of());
  }

  @Override
  public void awaitEnd() {
    server.awaitShutdown();
  }

  /**
   * Stops the broker; does nothing if it has not been started. Gives up after a while: Kafka itself
   * would wait minutes for a controller that does not answer.
   */
  @Override
  public void close() {
    if (server == null) {
      return;
    }
    Thread stopping = new Thread(server::shutdown, "kafka-shutdown");
    stopping.setDaemon(true);
    stopping.start();
    try {
      stopping.join(TimeUnit.SECONDS.toMillis(STOP_SECONDS));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (stopping.isAlive()) {
      System.err.println(
          "cipherlane-broker: not stopped within " + STOP_SECONDS + " s, going without");
    }
  }

  /** A folder that was used before keeps its records. */
  private void format(String clusterId) throws IOException {
    if (Files.exists(folder.logDir().resolve("meta.properties"))) {
      return;
    }
    ByteArrayOutputStream said = new ByteArrayOutputStream();
    String settings = folder.settingsFile().toString();
    String[] args = {"format", "--cluster-id", clusterId, "--config", settings};
    int exitCode = StorageTool.execute(args, new PrintStream(said, true, StandardCharsets.UTF_8));
    if (exitCode != 0) {
      throw new IOException(
          "cannot format " + folder.logDir() + ": " + said.toString(StandardCharsets.UTF_8));
    }
  }
}
