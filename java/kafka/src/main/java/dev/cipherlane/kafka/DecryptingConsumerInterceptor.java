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
 * {@code value()} throws a {@link RecordDecryptionException} [CL-KAF-010].
 *
 * <p>Used by one thread, that of the consumer. Of several interceptors it must be the first.
 *
 * @param <K> the type of keys, which are passed on as they are
 * @param <V> the type of values
 */
public final class DecryptingConsumerInterceptor<K, V> implements ConsumerInterceptor<K, V> {
  private Decryptor decryptor;
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
    try {
      decryptor = new Decryptor(ClientClasses.failingOnly(Configuration.of(settings)));
    } catch (CipherlaneException e) {
      throw ClientClasses.invalid(e);
    }
  }

  /**
   * Decrypts. Kafka swallows exceptions from here and hands over the batch as it was, so whatever
   * goes wrong with a record is kept for its {@code value()}.
   *
   * @param batch what was read
   * @return as many records, at the same places
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
      Object value = record.value();
      if (value != null && !(value instanceof byte[])) {
        throw new CipherlaneException(
            ErrorCode.VALUE_TYPE, "a value of " + value.getClass().getName() + ", not of byte[]");
      }
      byte[] plaintext =
          decryptor.decrypt(record.topic(), recordKey(record), (byte[]) value, deadline);
      return plaintext == value ? record : withValue(record, plaintext);
    } catch (Throwable e) {
      return new UndecryptableRecord<>(record, RecordDecryptionException.of(record, e));
    }
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

  /** Wipes all keys. */
  @Override
  public void close() {
    if (decryptor != null) {
      decryptor.close();
    }
  }
}
