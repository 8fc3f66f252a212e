package dev.cipherlane.kafka;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.Configuration;
import dev.cipherlane.Decryptor;
import dev.cipherlane.Encryptor;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.RecordKey;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.storage.Converter;

/**
 * Encrypts and decrypts in Kafka Connect, around another converter, for single connectors: {@code
 * value.converter=dev.cipherlane.kafka.EncryptingConverter}, {@code
 * value.converter.cipherlane.value.converter=...}, and all other settings of Cipherlane and of that
 * converter behind {@code value.converter.} too. For all connectors of a worker use the
 * interceptors.
 *
 * <p>A record that will never be readable is a {@link DataException}, which {@code
 * errors.tolerance} may tolerate. All else, such as an outage, ends the task with an {@link Error},
 * whatever is tolerated: nothing is lost, and the task goes on when it is restarted [CL-KAF-020].
 *
 * <p>Does not see record keys. Thread-safe if the other converter is.
 */
public final class EncryptingConverter implements Converter, AutoCloseable {
  private static final String OWN_SETTINGS = "cipherlane.";

  private Converter inner;
  private Encryptor encryptor;
  private Decryptor decryptor;

  /** For Kafka, which then calls {@link #configure}. */
  public EncryptingConverter() {}

  @Override
  public ConfigDef config() {
    return new ConfigDef();
  }

  /**
   * Takes the settings behind {@code value.converter.}.
   *
   * @param settings all of them
   * @param isKey must be false [CL-KAF-006]
   * @throws ConfigException if a setting is wrong
   */
  @Override
  public void configure(Map<String, ?> settings, boolean isKey) {
    ClientClasses.refuseKeys(isKey, "key.converter");
    ClientClasses.open(() -> open(settings), this::close);
  }

  private void open(Map<String, ?> settings) {
    Configuration configuration = ClientClasses.failingOnly(Configuration.of(settings));
    encryptor = new Encryptor(configuration);
    decryptor = new Decryptor(configuration);
    inner = ClientClasses.instance(settings, Configuration.VALUE_CONVERTER, Converter.class);
    inner.configure(others(settings), false);
  }

  private static Map<String, ?> others(Map<String, ?> settings) {
    return settings.entrySet().stream()
        .filter(setting -> !setting.getKey().startsWith(OWN_SETTINGS) && setting.getValue() != null)
        .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
  }

  @Override
  public byte[] fromConnectData(String topic, Schema schema, Object value) {
    return encrypted(topic, inner.fromConnectData(topic, schema, value));
  }

  @Override
  public byte[] fromConnectData(String topic, Headers headers, Schema schema, Object value) {
    return encrypted(topic, inner.fromConnectData(topic, headers, schema, value));
  }

  @Override
  public SchemaAndValue toConnectData(String topic, byte[] value) {
    return inner.toConnectData(topic, decrypted(topic, value));
  }

  @Override
  public SchemaAndValue toConnectData(String topic, Headers headers, byte[] value) {
    return inner.toConnectData(topic, headers, decrypted(topic, value));
  }

  private byte[] encrypted(String topic, byte[] value) {
    return orFail(topic, () -> encryptor.encrypt(topic, value));
  }

  private byte[] decrypted(String topic, byte[] value) {
    return orFail(
        topic, () -> decryptor.decrypt(topic, RecordKey.UNKNOWN, value, decryptor.deadline()));
  }

  private static byte[] orFail(String topic, Supplier<byte[]> work) {
    try {
      return work.get();
    } catch (RuntimeException e) {
      ErrorCode code = e instanceof CipherlaneException known ? known.code() : ErrorCode.INTERNAL;
      if (code.concernsRecord()) {
        throw new DataException(e.getMessage(), e);
      }
      throw new ConverterFailedError(topic, e);
    }
  }

  /** That the task has to end. */
  private static final class ConverterFailedError extends Error {
    private static final long serialVersionUID = 1L;

    ConverterFailedError(String topic, RuntimeException cause) {
      super("topic " + topic + ": " + cause.getMessage(), cause);
    }
  }

  /** Wipes the keys if no other client uses them, and closes the other converter. */
  @Override
  public void close() {
    // Converters of kafka-clients 3 need not be closeable.
    AutoCloseable other = (Object) inner instanceof AutoCloseable closeable ? closeable : null;
    Closing.all(encryptor, decryptor, other);
  }
}
