package dev.cipherlane.kafka;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.utils.Utils;

/**
 * Makes {@link EncryptingProducerInterceptor} work in producers with {@code StringSerializer},
 * which cannot carry an envelope: {@code
 * partitioner.class=dev.cipherlane.kafka.EnvelopePartitioner}. Kafka shows it the serialized value
 * just before that is stored, and it puts the envelope there. A record for which the interceptor
 * left no envelope is refused. See {@code spec/decisions/0005}.
 *
 * <p>Partitions are chosen as Kafka does: by the hash of the key; without a key, in runs over the
 * partitions that have a leader. Thread-safe.
 */
public final class EnvelopePartitioner implements Partitioner {
  /** Records without a key that go to one partition in a row, so that batches fill. */
  private static final int RUN = 64;

  private final AtomicInteger keyless = new AtomicInteger();

  /** For Kafka. */
  public EnvelopePartitioner() {}

  @Override
  public void configure(Map<String, ?> settings) {
    // No settings. What must go together, the interceptor checks; without it every record is
    // refused.
  }

  /**
   * Puts the envelope in place, and chooses a partition.
   *
   * @throws RecordRefusedException if there is no envelope for just this record: {@code send()}
   *     throws it
   */
  @Override
  public int partition(
      String topic, Object key, byte[] keyBytes, Object value, byte[] valueBytes, Cluster cluster) {
    boolean tombstone = value == null && valueBytes == null;
    if (!tombstone && (valueBytes == null || !Handover.take(topic, value, valueBytes))) {
      throw RecordRefusedException.of(
          topic,
          new CipherlaneException(
              ErrorCode.CONFIGURATION_INVALID,
              "EnvelopePartitioner needs EncryptingProducerInterceptor as the last interceptor"));
    }
    return keyBytes == null ? next(topic, cluster) : byKey(topic, keyBytes, cluster);
  }

  private static int byKey(String topic, byte[] keyBytes, Cluster cluster) {
    return Utils.toPositive(Utils.murmur2(keyBytes)) % cluster.partitionsForTopic(topic).size();
  }

  private int next(String topic, Cluster cluster) {
    List<PartitionInfo> available = cluster.availablePartitionsForTopic(topic);
    List<PartitionInfo> partitions =
        available.isEmpty() ? cluster.partitionsForTopic(topic) : available;
    int run = (keyless.getAndIncrement() & Integer.MAX_VALUE) / RUN;
    return partitions.get(run % partitions.size()).partition();
  }

  @Override
  public void close() {
    // Holds nothing.
  }
}
