package dev.cipherlane.kafka;

import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;

/**
 * A record whose {@code value()} throws; everything else is as it was read [CL-KAF-010]
 * [CL-KAF-012].
 */
final class UndecryptableRecord<K, V> extends ConsumerRecord<K, V> {
  private final ConsumerRecord<K, V> asRead;
  private final RecordDecryptionException error;

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
    this.asRead = record;
    this.error = error;
  }

  /** The record with its ciphertext. */
  ConsumerRecord<K, V> asRead() {
    return asRead;
  }

  RecordDecryptionException error() {
    return error;
  }

  /** The same, which now says also that the dead-letter topic did not take it [CL-KAF-023]. */
  UndecryptableRecord<K, V> withDeadLetterFailure(String topic, Throwable failure) {
    return new UndecryptableRecord<>(asRead, error.withDeadLetterFailure(topic, failure));
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
    return ConsumerApi.deliveryCount(asRead);
  }

  @Override
  public String toString() {
    return "UndecryptableRecord(" + error.getMessage() + ")";
  }
}
