package dev.cipherlane.kafka;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.common.TopicPartition;

/**
 * What differs between the consumers of kafka-clients 3 and 4. This is compiled against 4; the Java
 * runtime looks a method up when it is first called, which the conditions here prevent on 3.
 */
final class ConsumerApi {
  private static final boolean HAS_NEXT_OFFSETS = has(ConsumerRecords.class, "nextOffsets");
  private static final boolean HAS_DELIVERY_COUNT = has(ConsumerRecord.class, "deliveryCount");

  private ConsumerApi() {}

  private static boolean has(Class<?> type, String method) {
    try {
      type.getMethod(method);
      return true;
    } catch (NoSuchMethodException e) {
      return false;
    }
  }

  /** The same batch with other records: where the next poll goes on is kept. */
  @SuppressWarnings("removal") // In 4 the constructor that 3 has forgets the next offsets.
  static <K, V> ConsumerRecords<K, V> withRecords(
      ConsumerRecords<K, V> batch, Map<TopicPartition, List<ConsumerRecord<K, V>>> records) {
    return HAS_NEXT_OFFSETS
        ? new ConsumerRecords<>(records, batch.nextOffsets())
        : new ConsumerRecords<>(records);
  }

  static Optional<Short> deliveryCount(ConsumerRecord<?, ?> record) {
    return HAS_DELIVERY_COUNT ? record.deliveryCount() : Optional.empty();
  }

  /** The same record with another value. */
  static <K, V> ConsumerRecord<K, V> withValue(ConsumerRecord<K, V> record, V value, int size) {
    return HAS_DELIVERY_COUNT ? newer(record, value, size) : older(record, value, size);
  }

  private static <K, V> ConsumerRecord<K, V> newer(ConsumerRecord<K, V> record, V value, int size) {
    return new ConsumerRecord<>(
        record.topic(),
        record.partition(),
        record.offset(),
        record.timestamp(),
        record.timestampType(),
        record.serializedKeySize(),
        size,
        record.key(),
        value,
        record.headers(),
        record.leaderEpoch(),
        record.deliveryCount());
  }

  private static <K, V> ConsumerRecord<K, V> older(ConsumerRecord<K, V> record, V value, int size) {
    return new ConsumerRecord<>(
        record.topic(),
        record.partition(),
        record.offset(),
        record.timestamp(),
        record.timestampType(),
        record.serializedKeySize(),
        size,
        record.key(),
        value,
        record.headers(),
        record.leaderEpoch());
  }
}
