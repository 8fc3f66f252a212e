package dev.cipherlane.broker;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** Waits until brokers answer clients, and creates topics. */
final class Topics {
  private static final int READY_SECONDS = 30;

  private Topics() {}

  /**
   * Creates what is missing.
   *
   * @param bootstrap where the brokers are
   * @param brokers how many must be there first
   * @param topics name to number of partitions; each has as many copies as there are brokers
   */
  static void create(String bootstrap, int brokers, Map<String, Integer> topics) throws Exception {
    try (Admin admin =
        Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap))) {
      await(() -> nodes(admin) >= brokers, "not all brokers are there");
      for (Map.Entry<String, Integer> topic : topics.entrySet()) {
        create(admin, topic.getKey(), topic.getValue());
      }
      // The controller knows a new topic a moment before the broker serves it.
      await(() -> serves(admin, topics.keySet()), "a new topic is not served");
    }
  }

  private static int nodes(Admin admin) throws Exception {
    return admin.describeCluster().nodes().get(READY_SECONDS, TimeUnit.SECONDS).size();
  }

  private static void create(Admin admin, String name, int partitions) throws Exception {
    NewTopic topic = new NewTopic(name, Optional.of(partitions), Optional.empty());
    try {
      admin.createTopics(List.of(topic)).all().get();
    } catch (ExecutionException e) {
      // left by an earlier run in the same folder
      if (!(e.getCause() instanceof TopicExistsException)) {
        throw e;
      }
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

  private interface Condition {
    boolean holds() throws Exception;
  }

  private static void await(Condition condition, String otherwise) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(READY_SECONDS);
    while (!condition.holds()) {
      if (System.nanoTime() > deadline) {
        throw new TimeoutException(otherwise + " after " + READY_SECONDS + " s");
      }
      Thread.sleep(20);
    }
  }
}
