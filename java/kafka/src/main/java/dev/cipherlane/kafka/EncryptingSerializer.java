package dev.cipherlane.kafka;

import dev.cipherlane.Configuration;
import dev.cipherlane.Encryptor;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.serialization.Serializer;

/**
 * Encrypts what another serializer makes of the application's values: {@code
 * value.serializer=dev.cipherlane.kafka.EncryptingSerializer} with {@code
 * cipherlane.value.serializer=...}. What cannot be encrypted is not sent: {@code send()} throws a
 * {@link RecordRefusedException} [CL-KAF-001].
 *
 * <p>Thread-safe if the other serializer is.
 *
 * @param <T> the type of values
 */
public final class EncryptingSerializer<T> implements Serializer<T> {
  private Serializer<T> inner;
  private Encryptor encryptor;
  private ClientMetrics metrics;

  /**
   * For Kafka, which then calls {@link #configure}; the other serializer comes from the settings.
   */
  public EncryptingSerializer() {}

  /**
   * For code that makes its serializers itself, and has to call {@link #configure}.
   *
   * @param inner makes bytes of values; configured already, and closed with this one
   */
  public EncryptingSerializer(Serializer<T> inner) {
    this.inner = inner;
  }

  /**
   * Takes the producer's properties.
   *
   * @param settings all of them
   * @param isKey must be false [CL-KAF-006]
   * @throws ConfigException if a setting is wrong
   */
  @Override
  public void configure(Map<String, ?> settings, boolean isKey) {
    ClientClasses.refuseKeys(isKey, "key.serializer");
    ClientClasses.open(() -> open(settings), this::close);
  }

  @SuppressWarnings("unchecked") // The type of values is a promise of the settings.
  private void open(Map<String, ?> settings) {
    encryptor = new Encryptor(Configuration.of(settings));
    metrics = ClientMetrics.ofProducer(settings, encryptor.numbers());
    if (inner == null) {
      inner = ClientClasses.instance(settings, Configuration.VALUE_SERIALIZER, Serializer.class);
      inner.configure(settings, false);
    }
  }

  @Override
  public byte[] serialize(String topic, T value) {
    return encrypted(topic, inner.serialize(topic, value));
  }

  @Override
  public byte[] serialize(String topic, Headers headers, T value) {
    return encrypted(topic, inner.serialize(topic, headers, value));
  }

  private byte[] encrypted(String topic, byte[] value) {
    try {
      return encryptor.encrypt(topic, value);
    } catch (RuntimeException e) {
      throw RecordRefusedException.of(topic, e);
    }
  }

  /** Wipes all keys, and closes the other serializer. */
  @Override
  public void close() {
    Closing.all(metrics, encryptor, inner);
  }
}
