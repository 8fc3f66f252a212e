package dev.cipherlane.kafka;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.Configuration;
import dev.cipherlane.Decryptor;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.RecordKey;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Decrypts the values of a {@code byte[]} consumer: {@code
 * interceptor.classes=dev.cipherlane.kafka.DecryptingConsumerInterceptor}, and the settings of
 * {@code spec/configuration.md}. A record that cannot be decrypted stays in its place, and its
 * {@code value()} throws a {@link RecordDecryptionException} [CL-KAF-010]; what else may become of
 * it says {@code cipherlane.failure.action}.
 *
 * <p>Used by one thread, that of the consumer. Of several interceptors it must be the first.
 *
 * @param <K> the type of keys, which are passed on as they are
 * @param <V> the type of values
 */
public final class DecryptingConsumerInterceptor<K, V> implements ConsumerInterceptor<K, V> {
  private final StateLog log = StateLog.reading();
  private Decryptor decryptor;
  private FailureHandler<K, V> failures;
  private ClientMetrics metrics;
  private boolean seesRecordKeys;

  /** For Kafka, which then calls {@link #configure}. */
  public DecryptingConsumerInterceptor() {}

  /**
   * Takes the consumer's properties.
   *
   * @param settings all of them
   * @throws ConfigException if a setting is wrong, or if the value deserializer does not hand over
   *     the bytes as they are stored
   */
  @Override
  public void configure(Map<String, ?> settings) {
    String bytes = ByteArrayDeserializer.class.getName();
    if (!ClientClasses.name(settings, ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG)
        .equals(bytes)) {
      throw ClientClasses.invalid(
          ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG,
          "DecryptingConsumerInterceptor works with ByteArrayDeserializer; around any other"
              + " deserializer use DecryptingDeserializer");
    }
    seesRecordKeys =
        ClientClasses.name(settings, ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG).equals(bytes);
    ClientClasses.open(() -> open(Configuration.of(settings), settings), this::close);
  }

  private void open(Configuration configuration, Map<String, ?> settings) {
    decryptor = new Decryptor(configuration);
    failures = FailureHandler.of(configuration.reading(), settings, decryptor.numbers());
    metrics = ClientMetrics.ofConsumer(settings, decryptor.numbers());
  }

  /**
   * Decrypts. Kafka swallows exceptions from here and hands over the batch as it was, so whatever
   * goes wrong with a record is kept for its {@code value()}.
   *
   * @param batch what was read
   * @return the records at the same places, but for those that the failure action leaves out
   */
  @Override
  public ConsumerRecords<K, V> onConsume(ConsumerRecords<K, V> batch) {
    try {
      long deadline = decryptor.deadline();
      prepare(batch);
      Map<TopicPartition, List<ConsumerRecord<K, V>>> decrypted = new LinkedHashMap<>();
      for (TopicPartition partition : batch.partitions()) {
        decrypted.put(partition, decrypted(batch.records(partition), deadline));
      }
      failures.settle(decrypted);
      decrypted.values().removeIf(List::isEmpty);
      return ConsumerApi.withRecords(batch, decrypted);
    } catch (RuntimeException e) {
      // Not expected; but an exception would show the batch as it was, and Kafka lets an Error
      // pass.
      throw new IllegalConsumerState(e);
    }
  }

  /** That poll() has to fail, because there is no safe batch to return. */
  private static final class IllegalConsumerState extends Error {
    private static final long serialVersionUID = 1L;

    IllegalConsumerState(RuntimeException cause) {
      super("the batch could not be decrypted, and must not be shown as it is", cause);
    }
  }

  /** All keys that a topic needs, asked for together and for all topics at once [CL-KEY-010]. */
  private void prepare(ConsumerRecords<K, V> batch) {
    Map<String, List<byte[]>> values = new LinkedHashMap<>();
    for (ConsumerRecord<K, V> record : batch) {
      if (((Object) record.value()) instanceof byte[] value) {
        values.computeIfAbsent(record.topic(), topic -> new ArrayList<>()).add(value);
      }
    }
    values.forEach(decryptor::prepare);
  }

  private List<ConsumerRecord<K, V>> decrypted(List<ConsumerRecord<K, V>> records, long deadline) {
    List<ConsumerRecord<K, V>> decrypted = new ArrayList<>(records.size());
    for (ConsumerRecord<K, V> record : records) {
      decrypted.add(decrypted(record, deadline));
    }
    return decrypted;
  }

  private ConsumerRecord<K, V> decrypted(ConsumerRecord<K, V> record, long deadline) {
    try {
      byte[] value = bytes(record.value());
      byte[] plaintext = decryptor.decrypt(record.topic(), recordKey(record), value, deadline);
      log.succeeded(record.topic());
      return plaintext == value ? record : withValue(record, plaintext);
    } catch (Throwable e) {
      RecordDecryptionException error = RecordDecryptionException.of(record, e);
      log.failed(record.topic(), error.code(), error.getMessage());
      return new UndecryptableRecord<>(record, error);
    }
  }

  private byte[] bytes(Object value) {
    if (value == null || value instanceof byte[]) {
      return (byte[]) value;
    }
    decryptor.numbers().failed(ErrorCode.VALUE_TYPE);
    throw new CipherlaneException(
        ErrorCode.VALUE_TYPE, "a value of " + value.getClass().getName() + ", not of byte[]");
  }

  /**
   * What a deserializer made of a key says nothing of its bytes; that it was null, Kafka tells
   * apart.
   */
  private RecordKey recordKey(ConsumerRecord<K, V> record) {
    if (record.serializedKeySize() == ConsumerRecord.NULL_SIZE) {
      return RecordKey.of(null);
    }
    return seesRecordKeys && ((Object) record.key()) instanceof byte[] key
        ? RecordKey.of(key)
        : RecordKey.UNKNOWN;
  }

  @SuppressWarnings(
      "unchecked") // The deserializer gives byte[], and configure() made sure of that.
  private static <K, V> ConsumerRecord<K, V> withValue(
      ConsumerRecord<K, V> record, byte[] plaintext) {
    return ConsumerApi.withValue(record, (V) plaintext, plaintext.length);
  }

  @Override
  public void onCommit(Map<TopicPartition, OffsetAndMetadata> offsets) {
    // Nothing to do.
  }

  /** Ends what the failure action needs, and wipes the keys if no other client uses them. */
  @Override
  public void close() {
    Closing.all(failures, metrics, decryptor);
  }
}
