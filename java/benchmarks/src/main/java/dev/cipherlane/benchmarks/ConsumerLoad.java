package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Consumers that each read a topic from its beginning: {@code run TOPIC RECORDS PAYLOAD_FILE}, with
 * the records of all together. The topic has no more than one's share, or they would fetch what
 * they do not count.
 */
final class ConsumerLoad implements Load {
  private static final Duration PATIENCE = Duration.ofSeconds(60);
  // Kafka's default is 1 MiB, of which each consumer may hold two.
  private static final String FETCH = "262144";

  private final Pool<KafkaConsumer<byte[], byte[]>> consumers;

  ConsumerLoad(int count, Properties configuration) {
    Properties own = new Properties();
    own.putAll(configuration);
    own.put("max.partition.fetch.bytes", FETCH);
    consumers =
        new Pool<>(
            count,
            () ->
                new KafkaConsumer<>(own, new ByteArrayDeserializer(), new ByteArrayDeserializer()));
  }

  @Override
  public Map<String, Double> run(List<String> arguments) throws Exception {
    TopicPartition partition = new TopicPartition(arguments.get(0), 0);
    int share = Integer.parseInt(arguments.get(1)) / consumers.clients().size();
    consumers.each(consumer -> read(consumer, partition, share));
    return Map.of();
  }

  private static void read(
      KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition, int records)
      throws IOException {
    consumer.assign(List.of(partition));
    consumer.seekToBeginning(List.of(partition));
    for (int read = 0; read < records; ) {
      int more = consumer.poll(PATIENCE).count();
      if (more == 0) {
        throw new IOException("only " + read + " of " + records + " records in " + partition);
      }
      read += more;
    }
  }

  @Override
  public void close() throws IOException {
    consumers.close();
  }
}
