package dev.cipherlane.broker;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/**
 * The broker's settings, in Kafka's own names: what makes it a small node that starts and stops
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
          "listener.security.protocol.map",
          "security.inter.broker.protocol",
          "controller.listener.names",
          "controller.quorum.voters",
          "controller.quorum.bootstrap.servers",
          "log.dir",
          "log.dirs",
          "metadata.log.dir",
          "auto.create.topics.enable");

  /** Stands for the id of the node in the values of {@code --set}: what each has of its own. */
  private static final String NODE = "{node}";

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

  static Properties of(
      Options options, Member member, String address, List<Listener> listeners, Path logDir) {
    String forClients = Listener.PLAINTEXT + "://" + address + uris(listeners);
    Properties settings = new Properties();
    settings.putAll(QUICK);
    settings.putAll(copies(member.size()));
    settings.setProperty("inter.broker.listener.name", Listener.PLAINTEXT);
    options.set().forEach((key, value) -> settings.put(key, value.replace(NODE, "" + member.id())));
    settings.setProperty("process.roles", "broker,controller");
    settings.setProperty("node.id", String.valueOf(member.id()));
    settings.setProperty(
        "listeners", forClients + ",CONTROLLER://127.0.0.1:" + member.controllerPort());
    settings.setProperty("advertised.listeners", forClients);
    settings.setProperty("listener.security.protocol.map", protocols(listeners));
    settings.setProperty("controller.listener.names", Listener.CONTROLLER);
    settings.setProperty("controller.quorum.voters", member.voters());
    settings.setProperty("log.dirs", logDir.toString());
    settings.setProperty("auto.create.topics.enable", Boolean.toString(options.autoCreate()));
    return settings;
  }

  /** Every partition is on every broker, and all but one must have a record before it counts. */
  private static Map<String, String> copies(int brokers) {
    String all = String.valueOf(brokers);
    String enough = String.valueOf(Math.max(1, brokers - 1));
    Map<String, String> settings = new HashMap<>();
    settings.put("default.replication.factor", all);
    settings.put("min.insync.replicas", enough);
    for (String topic : List.of("transaction.state.log", "share.coordinator.state.topic")) {
      settings.put(topic + ".replication.factor", all);
      settings.put(topic + ".min.isr", enough);
    }
    settings.put("offsets.topic.replication.factor", all);
    if (brokers > 1) {
      // A test that kills a broker waits this long for the next leader; Kafka's default is 9 s.
      settings.put("broker.session.timeout.ms", "4000");
      settings.put("broker.heartbeat.interval.ms", "500");
    }
    return settings;
  }

  private static String uris(List<Listener> listeners) {
    return listeners.stream()
        .filter(Listener::forClients)
        .map(listener -> "," + listener.name() + "://" + listener.address())
        .collect(Collectors.joining());
  }

  private static String protocols(List<Listener> listeners) {
    Map<String, String> protocols = new TreeMap<>();
    protocols.put(Listener.PLAINTEXT, "PLAINTEXT");
    protocols.put(Listener.CONTROLLER, "PLAINTEXT");
    listeners.forEach(listener -> protocols.put(listener.name(), listener.protocol().name));
    return protocols.entrySet().stream()
        .map(protocol -> protocol.getKey() + ":" + protocol.getValue())
        .collect(Collectors.joining(","));
  }
}
