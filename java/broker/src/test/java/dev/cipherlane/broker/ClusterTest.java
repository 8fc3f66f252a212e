package dev.cipherlane.broker;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.testing.BrokerProcess;
import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.TopicPartitionInfo;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Three brokers, one of which may be away. */
@Timeout(240)
class ClusterTest {
  private static BrokerProcess cluster;

  @BeforeAll
  static void start() throws IOException {
    cluster =
        BrokerProcess.start(
            "--cluster",
            "3",
            "--topics",
            "orders:1",
            "--listener",
            "MORE:PLAINTEXT",
            "--set",
            "broker.rack=rack-{node}");
  }

  @AfterAll
  static void stop() throws IOException {
    List<BrokerProcess.Node> nodes = cluster.nodes();
    cluster.close();

    assertThat(cluster.dir()).doesNotExist();
    assertThat(nodes)
        .noneMatch(node -> ProcessHandle.of(node.pid()).filter(ProcessHandle::isAlive).isPresent());
  }

  @Test
  void keepsARecordOnEveryBrokerAndGoesOnWithoutOne() throws Exception {
    produce("before");
    int leader = partition().leader().id();
    assertThat(partition().replicas()).hasSize(3);

    cluster.killNode(leader);
    produce("without the first leader");
    cluster.startNode(leader);
    int next = leader % 3 + 1;
    cluster.pauseNode(next);
    produce("without another");
    cluster.resumeNode(next);

    assertThat(Clients.consume(cluster.bootstrap(), "orders", 3))
        .contains("before", "without the first leader", "without another");
  }

  @Test
  void hasItsListenersOnEveryBroker() throws Exception {
    String more = cluster.bootstrap("MORE");

    assertThat(more.split(",")).hasSize(3);
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", more))) {
      assertThat(admin.describeCluster().nodes().get())
          .extracting(node -> node.host() + ":" + node.port())
          .isSubsetOf(more.split(","));
    }
    assertThatThrownBy(() -> cluster.bootstrap("LESS")).hasMessageContaining("no listener LESS");
  }

  @Test
  void givesEveryBrokerItsOwnSettings() throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", cluster.bootstrap()))) {
      assertThat(admin.describeCluster().nodes().get())
          .isNotEmpty()
          .allSatisfy(node -> assertThat(node.rack()).isEqualTo("rack-" + node.id()));
    }
  }

  @Test
  void refusesToStartWhatRuns() {
    assertThatThrownBy(() -> cluster.startNode(1)).hasMessageContaining("that node runs");
    assertThatThrownBy(() -> cluster.startNode(4)).hasMessageContaining("no node 4");
  }

  /** Until a leader takes it, which on a busy machine may be a while. */
  private static void produce(String value) throws Exception {
    for (int tries = 12; ; tries--) {
      try {
        Clients.produce(cluster.bootstrap(), "orders", value);
        return;
      } catch (ExecutionException e) {
        if (tries == 0) {
          throw e;
        }
      }
    }
  }

  private static TopicPartitionInfo partition() throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", cluster.bootstrap()))) {
      TopicDescription topic =
          admin.describeTopics(List.of("orders")).allTopicNames().get().get("orders");
      return topic.partitions().get(0);
    }
  }
}
