package dev.cipherlane.broker;

import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import java.util.Set;

/**
 * The broker's settings, in Kafka's own names: what makes it one small node that starts and stops
 * quickly.
 */
final class Settings {
  /** Settings that the program needs as they are, or has an option for. */
  static final Set<String> OWN =
      Set.of(
          "process.roles",
          "node.id",
          "broker.id",
          "listeners",
          "advertised.listeners",
          "inter.broker.listener.name",
          "security.inter.broker.protocol",
          "controller.listener.names",
          "controller.quorum.voters",
          "controller.quorum.bootstrap.servers",
          "log.dir",
          "log.dirs",
          "metadata.log.dir",
          "auto.create.topics.enable");

  /** One broker can hold one copy of each partition; Kafka's defaults ask for three. */
  private static final Map<String, String> ONE_COPY =
      Map.of(
          "offsets.topic.replication.factor", "1",
          "transaction.state.log.replication.factor", "1",
          "transaction.state.log.min.isr", "1",
          "share.coordinator.state.topic.replication.factor", "1",
          "share.coordinator.state.topic.min.isr", "1");

  private static final Map<String, String> QUICK =
      Map.of(
          // One partition in place of 50: each is files to create when the first group, transaction
          // or share appears.
          "offsets.topic.num.partitions", "1",
          "transaction.state.log.num.partitions", "1",
          "share.coordinator.state.topic.num.partitions", "1",
          // The first consumer of a group does not wait three seconds for others.
          "group.initial.rebalance.delay.ms", "0",
          // The log cleaner takes this much heap at the start, 128 MiB by default.
          "log.cleaner.dedupe.buffer.size", "16777216");

  private Settings() {}

  static Properties of(Options options, Path logDir, int brokerPort, int controllerPort) {
    String listener = "PLAINTEXT://127.0.0.1:" + brokerPort;
    Properties settings = new Properties();
    settings.putAll(ONE_COPY);
    settings.putAll(QUICK);
    settings.putAll(options.set());
    settings.setProperty("process.roles", "broker,controller");
    settings.setProperty("node.id", "1");
    settings.setProperty("listeners", listener + ",CONTROLLER://127.0.0.1:" + controllerPort);
    settings.setProperty("advertised.listeners", listener);
    settings.setProperty("inter.broker.listener.name", "PLAINTEXT");
    settings.setProperty("controller.listener.names", "CONTROLLER");
    settings.setProperty("controller.quorum.voters", "1@127.0.0.1:" + controllerPort);
    settings.setProperty("log.dirs", logDir.toString());
    settings.setProperty("auto.create.topics.enable", Boolean.toString(options.autoCreate()));
    return settings;
  }
}
