package dev.cipherlane.kafka;

import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * A record that cannot be sent: its {@code value()} throws, so {@code send()} does [CL-KAF-001].
 * See {@code spec/decisions/0001}.
 */
final class RefusedRecord<K, V> extends ProducerRecord<K, V> {
  /**
   * Of a class that no serializer of bytes or strings takes, for whoever reads the field itself.
   */
  private static final class NoValue {
    @Override
    public String toString() {
      return "refused";
    }
  }

  private static final Object NO_VALUE = new NoValue();

  private final RecordRefusedException error;

  @SuppressWarnings("unchecked") // It is no V, on purpose: a serializer that got it would fail.
  RefusedRecord(ProducerRecord<K, V> record, RecordRefusedException error) {
    super(
        record.topic(),
        record.partition(),
        record.timestamp(),
        record.key(),
        (V) NO_VALUE,
        record.headers());
    this.error = error;
  }

  /**
   * Throws.
   *
   * @throws RecordRefusedException always
   */
  @Override
  public V value() {
    throw error;
  }
}
