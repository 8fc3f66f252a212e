package dev.cipherlane.benchmarks;

import java.io.Closeable;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.ClientUtils;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.network.NetworkReceive;
import org.apache.kafka.common.network.NetworkSend;
import org.apache.kafka.common.network.Selector;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.requests.ApiVersionsRequest;
import org.apache.kafka.common.requests.RequestHeader;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;

/**
 * Connections to a broker without a client around them, over the network classes of Kafka's own
 * clients. Not thread-safe.
 */
final class Connections implements Closeable {
  private static final long PATIENCE_MS = 30_000;
  private static final int DEFAULT = -1;

  private final Selector selector;
  private final InetSocketAddress broker;

  Connections(Properties configuration) {
    AdminClientConfig config = new AdminClientConfig(configuration);
    List<String> bootstrap = config.getList("bootstrap.servers");
    broker = ClientUtils.parseAndValidateAddresses(bootstrap, "use_all_dns_ips").get(0);
    LogContext log = new LogContext();
    selector =
        new Selector(
            NetworkReceive.UNLIMITED,
            Selector.NO_IDLE_TIMEOUT_MS,
            0,
            new Metrics(),
            Time.SYSTEM,
            "bench",
            Map.of(),
            false,
            ClientUtils.createChannelBuilder(config, Time.SYSTEM, log),
            log);
  }

  /** Connects, shakes hands, and has one small request answered. */
  void open(String id) throws IOException {
    selector.connect(id, broker, DEFAULT, DEFAULT);
    await(id, () -> selector.isChannelReady(id));
    selector.send(new NetworkSend(id, request()));
    await(id, () -> !selector.completedReceives().isEmpty());
  }

  private static org.apache.kafka.common.network.Send request() {
    short version = ApiKeys.API_VERSIONS.latestVersion();
    RequestHeader header = new RequestHeader(ApiKeys.API_VERSIONS, version, "bench", 0);
    return new ApiVersionsRequest.Builder().build(version).toSend(header);
  }

  private void await(String id, BooleanSupplier condition) throws IOException {
    long end = System.currentTimeMillis() + PATIENCE_MS;
    while (!condition.getAsBoolean()) {
      selector.poll(PATIENCE_MS);
      if (selector.disconnected().containsKey(id) || System.currentTimeMillis() > end) {
        throw new IOException("no connection: " + selector.disconnected().get(id));
      }
    }
  }

  void close(String id) {
    selector.close(id);
  }

  @Override
  public void close() {
    selector.close();
  }
}
