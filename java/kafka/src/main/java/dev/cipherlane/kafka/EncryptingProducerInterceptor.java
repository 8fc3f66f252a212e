package dev.cipherlane.kafka;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.Configuration;
import dev.cipherlane.Encryptor;
import dev.cipherlane.RecordKey;
import java.util.Map;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerInterceptor;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Encrypts the values of a {@code byte[]} producer (or, with {@link EnvelopePartitioner}, of a
 * String producer): {@code interceptor.classes=dev.cipherlane.kafka.EncryptingProducerInterceptor},
 * and the settings of {@code spec/configuration.md}. A record that cannot be encrypted is not sent:
 * {@code send()} throws a {@link RecordRefusedException} [CL-KAF-001].
 *
 * <p>Thread-safe, as Kafka asks of it. Of several interceptors it must be the last.
 *
 * @param <K> the type of keys, which are passed on as they are
 * @param <V> the type of values
 */
public final class EncryptingProducerInterceptor<K, V> implements ProducerInterceptor<K, V> {
  private final StateLog log = StateLog.writing();
  private ValueForm form;
  private boolean seesRecordKeys;
  private Encryptor encryptor;
  private ClientMetrics metrics;

  /** For Kafka, which then calls {@link #configure}. */
  public EncryptingProducerInterceptor() {}

  /**
   * Takes the producer's properties.
   *
   * @param settings all of them
   * @throws ConfigException if a setting is wrong, or if the value serializer is one that might
   *     take what it must refuse [CL-KAF-004]
   */
  @Override
  public void configure(Map<String, ?> settings) {
    form = ValueForm.of(settings);
    seesRecordKeys =
        ClientClasses.name(settings, ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG)
            .equals(ByteArraySerializer.class.getName());
    ClientClasses.open(() -> open(settings), this::close);
  }

  private void open(Map<String, ?> settings) {
    encryptor = new Encryptor(Configuration.of(settings));
    metrics = ClientMetrics.ofProducer(settings, encryptor.numbers());
  }

  /**
   * Encrypts. Never throws an exception: Kafka would swallow it and send the record as it was.
   *
   * @param record the application's record, which is not changed [CL-KAF-002]
   * @return the record to send, or one whose {@code value()} throws
   */
  @Override
  public ProducerRecord<K, V> onSend(ProducerRecord<K, V> record) {
    try {
      ProducerRecord<K, V> encrypted = encrypted(record);
      log.succeeded(record.topic());
      return encrypted;
    } catch (Throwable e) {
      // Everything, also errors of memory. Should there be no memory even for this, an Error
      // leaves,
      // which Kafka does not swallow.
      RecordRefusedException error = RecordRefusedException.of(record.topic(), e);
      log.failed(record.topic(), error.code(), error.getMessage());
      return new RefusedRecord<>(record, error);
    }
  }

  private ProducerRecord<K, V> encrypted(ProducerRecord<K, V> record) {
    byte[] envelope = encryptor.encrypt(record.topic(), recordKey(record), plaintext(record));
    return envelope == null ? record : withValue(record, form.sent(record.topic(), envelope));
  }

  private byte[] plaintext(ProducerRecord<K, V> record) {
    try {
      return (Object) record.value() == null ? null : form.plaintext(record);
    } catch (CipherlaneException e) {
      encryptor.numbers().failed(e.code());
      throw e;
    }
  }

  /** What another serializer will make of a key, even of null, is not known here [CL-KAF-031]. */
  private RecordKey recordKey(ProducerRecord<K, V> record) {
    Object key = record.key();
    return seesRecordKeys && (key == null || key instanceof byte[])
        ? RecordKey.of((byte[]) key)
        : RecordKey.UNKNOWN;
  }

  @SuppressWarnings("unchecked") // It is what the serializer takes: configure() made sure of that.
  private static <K, V> ProducerRecord<K, V> withValue(ProducerRecord<K, V> record, Object value) {
    return new ProducerRecord<>(
        record.topic(),
        record.partition(),
        record.timestamp(),
        record.key(),
        (V) value,
        record.headers());
  }

  @Override
  public void onAcknowledgement(RecordMetadata metadata, Exception error) {
    // Nothing to do: by then the record has left.
  }

  /** Wipes the keys if no other client uses them. */
  @Override
  public void close() {
    Closing.all(metrics, encryptor);
  }
}
