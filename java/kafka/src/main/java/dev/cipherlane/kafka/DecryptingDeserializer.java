package dev.cipherlane.kafka;

import dev.cipherlane.Configuration;
import dev.cipherlane.Decryptor;
import dev.cipherlane.RecordKey;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.Deserializer;

/**
 * Decrypts values and gives them to another deserializer: {@code
 * value.deserializer=dev.cipherlane.kafka.DecryptingDeserializer} with {@code
 * cipherlane.value.deserializer=...}. What cannot be decrypted throws, and the consumer's position
 * stays at the record [CL-KAF-013].
 *
 * <p>Thread-safe if the other deserializer is. It does not see record keys, so it cannot read
 * records that bind them.
 *
 * @param <T> the type of values
 */
public final class DecryptingDeserializer<T> implements Deserializer<T> {
  private Deserializer<T> inner;
  private Decryptor decryptor;
  private ClientMetrics metrics;

  /**
   * For Kafka, which then calls {@link #configure}; the other deserializer comes from the settings.
   */
  public DecryptingDeserializer() {}

  /**
   * For code that makes its deserializers itself, and has to call {@link #configure}.
   *
   * @param inner makes values of bytes; configured already, and closed with this one
   */
  public DecryptingDeserializer(Deserializer<T> inner) {
    this.inner = inner;
  }

  /**
   * Takes the consumer's properties.
   *
   * @param settings all of them
   * @param isKey must be false [CL-KAF-006]
   * @throws ConfigException if a setting is wrong
   */
  @Override
  public void configure(Map<String, ?> settings, boolean isKey) {
    ClientClasses.refuseKeys(isKey, "key.deserializer");
    ClientClasses.open(() -> open(settings), this::close);
  }

  @SuppressWarnings("unchecked") // The type of values is a promise of the settings.
  private void open(Map<String, ?> settings) {
    decryptor = new Decryptor(ClientClasses.failingOnly(Configuration.of(settings)));
    metrics = ClientMetrics.ofConsumer(settings, decryptor.numbers());
    if (inner == null) {
      inner =
          ClientClasses.instance(settings, Configuration.VALUE_DESERIALIZER, Deserializer.class);
      inner.configure(settings, false);
    }
  }

  @Override
  public T deserialize(String topic, byte[] value) {
    return inner.deserialize(topic, decrypted(topic, value));
  }

  @Override
  public T deserialize(String topic, Headers headers, byte[] value) {
    return inner.deserialize(topic, headers, decrypted(topic, value));
  }

  private byte[] decrypted(String topic, byte[] value) {
    try {
      return decryptor.decrypt(topic, RecordKey.UNKNOWN, value, decryptor.deadline());
    } catch (RuntimeException e) {
      throw RecordDecryptionException.of(topic, e);
    }
  }

  /** Wipes all keys, and closes the other deserializer. */
  @Override
  public void close() {
    Closing.all(metrics, decryptor, inner);
  }
}
