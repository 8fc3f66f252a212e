package dev.cipherlane.kafka;

import dev.cipherlane.Numbers;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.utils.Time;

/**
 * A client's numbers ({@code spec/kafka.md}, "Numbers") as Kafka metrics of the group {@code
 * cipherlane}, in JMX beside the client's own: {@code
 * kafka.producer:type=cipherlane,client-id=...}. The client's own registry cannot be reached from a
 * plug-in before kafka-clients 4.1. Also in Micrometer, where the application has it.
 */
final class ClientMetrics implements AutoCloseable {
  private static final String GROUP = "cipherlane";

  private final JmxReporter reporter = new JmxReporter();
  private final AutoCloseable micrometer;

  private ClientMetrics(String domain, Map<String, ?> settings, Numbers numbers) {
    Object given = settings.get(CommonClientConfigs.CLIENT_ID_CONFIG);
    String clientId = given == null ? "" : given.toString();
    Map<String, String> tags = Map.of("client-id", clientId);
    reporter.configure(settings);
    reporter.contextChange(new KafkaMetricsContext(domain));
    reporter.init(numbers.figures().stream().map(figure -> metric(figure, tags)).toList());
    micrometer = micrometer(clientId, numbers);
  }

  static ClientMetrics ofProducer(Map<String, ?> settings, Numbers numbers) {
    return new ClientMetrics("kafka.producer", settings, numbers);
  }

  static ClientMetrics ofConsumer(Map<String, ?> settings, Numbers numbers) {
    return new ClientMetrics("kafka.consumer", settings, numbers);
  }

  private static AutoCloseable micrometer(String clientId, Numbers numbers) {
    try {
      return new MicrometerNumbers(clientId, numbers);
    } catch (LinkageError e) {
      return () -> {}; // The application does not have Micrometer.
    }
  }

  private static KafkaMetric metric(Numbers.Figure figure, Map<String, String> clientTags) {
    Map<String, String> tags = new HashMap<>(clientTags);
    tags.putAll(figure.tags());
    Gauge<Double> gauge = (config, now) -> figure.value().getAsDouble();
    return new KafkaMetric(
        new Object(),
        new MetricName(figure.name(), GROUP, figure.description(), tags),
        gauge,
        new MetricConfig(),
        Time.SYSTEM);
  }

  @Override
  public void close() {
    Closing.all(reporter, micrometer);
  }
}
