package dev.cipherlane.kafka;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.Configuration;
import dev.cipherlane.ErrorCode;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * The settings of the producer of dead letters, made of its consumer's: connection and security are
 * the same, and nothing else is [CL-KAF-022].
 */
final class DeadLetterSettings {
  private static final List<String> CONNECTION =
      List.of("bootstrap.", "security.", "ssl.", "sasl.", "client.dns.", "socket.", "reconnect.");

  /** Milliseconds to learn of the topic, or for room in the buffer. */
  private static final int MAX_BLOCK = 10_000;

  /** Milliseconds for one request, and for a record with all its retries. */
  private static final int REQUEST_TIMEOUT = 10_000;

  private static final int DELIVERY_TIMEOUT = 20_000;

  private DeadLetterSettings() {}

  /**
   * Makes them.
   *
   * @throws CipherlaneException {@code configuration-invalid} if the consumer does not see keys as
   *     they are stored: a dead letter has to have the same
   */
  static Map<String, Object> of(Map<String, ?> consumer) {
    if (!ClientClasses.name(consumer, ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG)
        .equals(ByteArrayDeserializer.class.getName())) {
      throw new CipherlaneException(
          ErrorCode.CONFIGURATION_INVALID,
          "setting "
              + Configuration.FAILURE_ACTION
              + ": dead-letter passes the record key on as it is stored, which needs"
              + " key.deserializer=ByteArrayDeserializer");
    }
    Map<String, Object> settings = new HashMap<>();
    consumer.forEach(
        (name, value) -> {
          if (value != null && passedOn(name)) {
            settings.put(name, value);
          }
        });
    settings.put(ProducerConfig.CLIENT_ID_CONFIG, clientId(consumer));
    settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
    settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class);
    settings.put(ProducerConfig.ACKS_CONFIG, "all");
    settings.put(ProducerConfig.MAX_BLOCK_MS_CONFIG, MAX_BLOCK);
    settings.put(ProducerConfig.REQUEST_TIMEOUT_MS_CONFIG, REQUEST_TIMEOUT);
    settings.put(ProducerConfig.DELIVERY_TIMEOUT_MS_CONFIG, DELIVERY_TIMEOUT);
    settings.put(ProducerConfig.LINGER_MS_CONFIG, 0);
    // Each letter by itself: one that the topic does not take must not take others with it. Before
    // kafka-clients 4.2 such a batch is split and sent again without end (KAFKA-8350).
    settings.put(ProducerConfig.BATCH_SIZE_CONFIG, 0);
    // Whatever could be read; the broker has the last word.
    settings.put(ProducerConfig.MAX_REQUEST_SIZE_CONFIG, Integer.MAX_VALUE);
    return settings;
  }

  /** Also what Kafka does not know: security plug-ins have settings of their own. */
  private static boolean passedOn(String name) {
    boolean known =
        ConsumerConfig.configNames().contains(name) || ProducerConfig.configNames().contains(name);
    return !known || CONNECTION.stream().anyMatch(name::startsWith);
  }

  private static String clientId(Map<String, ?> consumer) {
    Object own = consumer.get(ConsumerConfig.CLIENT_ID_CONFIG);
    return (own == null || own.toString().isEmpty() ? "cipherlane" : own) + "-dead-letter";
  }
}
