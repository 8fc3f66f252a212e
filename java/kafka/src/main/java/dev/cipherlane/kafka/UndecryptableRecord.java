package dev.cipherlane.kafka;

import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * A record whose {@code value()} throws; everything else is as it was read [CL-KAF-010]
 * [CL-KAF-012].
 */
final class UndecryptableRecord<K, V> extends ConsumerRecord<K, V> {
  private final RecordDecryptionException error;
  private final Optional<Short> deliveryCount;

  UndecryptableRecord(ConsumerRecord<K, V> record, RecordDecryptionException error) {
    super(
        record.topic(),
        record.partition(),
        record.offset(),
        record.timestamp(),
        record.timestampType(),
        record.serializedKeySize(),
        record.serializedValueSize(),
        record.key(),
        null,
        record.headers(),
        record.leaderEpoch());
    this.error = error;
    this.deliveryCount = ConsumerApi.deliveryCount(record);
  }

  /**
   * Throws.
   *
   * @throws RecordDecryptionException always
   */
  @Override
  public V value() {
    throw error;
  }

  /** Overrides nothing in kafka-clients 3. */
  @Override
  public Optional<Short> deliveryCount() {
    return deliveryCount;
  }

  @Override
  public String toString() {
    return "UndecryptableRecord(" + error.getMessage() + ")";
  }
}
