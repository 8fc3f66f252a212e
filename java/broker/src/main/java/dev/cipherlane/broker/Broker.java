package dev.cipherlane.broker;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.utils.Time;

/**
 * One Kafka broker and controller in this process. It is the server that {@code kafka.Kafka} runs,
 * without that class's handling of arguments and signals.
 *
 * <p>Thread-safe in so far as {@link #stop()} may come from another thread at any time.
 */
final class Broker {
  private static final int READY_SECONDS = 30;
  private static final int STOP_SECONDS = 20;

  private final WorkFolder folder;
  private final Options options;
  private volatile KafkaRaftServer server;
  private volatile String bootstrap;

  Broker(WorkFolder folder, Options options) {
    this.folder = folder;
    this.options = options;
  }

  /** Returns once the broker answers clients and has the topics of the options. */
  void start() throws Exception {
    int port = options.port() == 0 ? FreePort.reserve() : options.port();
    bootstrap = "127.0.0.1:" + port;
    Properties settings = Settings.of(options, folder.logDir(), port, FreePort.reserve());
    try (OutputStream out = Files.newOutputStream(folder.settingsFile())) {
      settings.store(out, "written anew at every start");
    }
    format();
    server = new KafkaRaftServer(KafkaConfig.fromProps(settings), Time.SYSTEM);
    server.startup();
    try (Admin admin =
        Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap))) {
      admin.describeCluster().nodes().get(READY_SECONDS, TimeUnit.SECONDS);
      createTopics(admin);
    }
  }

  String bootstrap() {
    return bootstrap;
  }

  void awaitEnd() {
    server.awaitShutdown();
  }

  /**
   * Stops the broker; does nothing if it has not been started. Gives up after a while: Kafka itself
   * would wait minutes for a controller that does not answer.
   */
  void stop() {
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
  private void format() throws IOException {
    if (Files.exists(folder.logDir().resolve("meta.properties"))) {
      return;
    }
    ByteArrayOutputStream said = new ByteArrayOutputStream();
    String[] args = {
      "format",
      "--cluster-id",
      Uuid.randomUuid().toString(),
      "--config",
      folder.settingsFile().toString()
    };
    int exitCode = StorageTool.execute(args, new PrintStream(said, true, StandardCharsets.UTF_8));
    if (exitCode != 0) {
      throw new IOException(
          "cannot format " + folder.logDir() + ": " + said.toString(StandardCharsets.UTF_8));
    }
  }

  private void createTopics(Admin admin) throws Exception {
    for (Map.Entry<String, Integer> topic : options.topics().entrySet()) {
      try {
        admin
            .createTopics(List.of(new NewTopic(topic.getKey(), topic.getValue(), (short) 1)))
            .all()
            .get();
      } catch (ExecutionException e) {
        if (!(e.getCause()
            instanceof TopicExistsException)) { // left by an earlier run in the same folder
          throw e;
        }
      }
    }
    awaitTopics(admin);
  }

  /** The controller knows a new topic a moment before the broker serves it. */
  private void awaitTopics(Admin admin) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(READY_SECONDS);
    while (!serves(admin, options.topics().keySet())) {
      if (System.nanoTime() > deadline) {
        throw new TimeoutException("a new topic is not served after " + READY_SECONDS + " s");
      }
      Thread.sleep(20);
    }
  }

  private static boolean serves(Admin admin, Set<String> topics) throws Exception {
    try {
      admin.describeTopics(topics).allTopicNames().get(READY_SECONDS, TimeUnit.SECONDS);
      return true;
    } catch (ExecutionException e) {
      if (e.getCause() instanceof UnknownTopicOrPartitionException) {
        return false;
      }
      throw e;
    }
  }
}
