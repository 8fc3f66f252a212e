package dev.cipherlane.kafka;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * What kind of values a producer has, by its serializer: where the plaintext is, and what is handed
 * to Kafka for an envelope. Only serializers are known here that refuse a {@link RefusedRecord}
 * [CL-KAF-004].
 */
enum ValueForm {
  /** Values are byte[]: the envelope takes the place of the value. */
  BYTES {
    @Override
    byte[] plaintext(ProducerRecord<?, ?> record) {
      if (((Object) record.value()) instanceof byte[] value) {
        return value;
      }
      throw wrongType(record, "byte[]");
    }

    @Override
    Object sent(String topic, byte[] envelope) {
      return envelope;
    }
  },

  /**
   * Values are String: a placeholder does, and {@link EnvelopePartitioner} puts the envelope there.
   */
  STRINGS {
    @Override
    byte[] plaintext(ProducerRecord<?, ?> record) {
      if (record.partition() != null) {
        throw new CipherlaneException(
            ErrorCode.CONFIGURATION_INVALID,
            "with StringSerializer a record must not name its partition: EnvelopePartitioner has to");
      }
      if (((Object) record.value()) instanceof String value) {
        return value.getBytes(StandardCharsets.UTF_8);
      }
      throw wrongType(record, "String");
    }

    @Override
    Object sent(String topic, byte[] envelope) {
      return Handover.leave(topic, envelope);
    }
  };

  /** The bytes to encrypt, of a value that is not null. */
  abstract byte[] plaintext(ProducerRecord<?, ?> record);

  /** What the producer's serializer gets. */
  abstract Object sent(String topic, byte[] envelope);

  private static CipherlaneException wrongType(ProducerRecord<?, ?> record, String right) {
    return new CipherlaneException(
        ErrorCode.VALUE_TYPE,
        "a value of " + ((Object) record.value()).getClass().getName() + ", not of " + right);
  }

  /**
   * Finds the form of a producer's values.
   *
   * @throws ConfigException if a refusal would not hold with these settings
   */
  static ValueForm of(Map<String, ?> settings) {
    String serializer = ClientClasses.name(settings, ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG);
    if (serializer.equals(ByteArraySerializer.class.getName())) {
      return BYTES;
    }
    if (serializer.equals(StringSerializer.class.getName())) {
      checkStrings(settings);
      return STRINGS;
    }
    throw ClientClasses.invalid(
        ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG,
        "EncryptingProducerInterceptor works with ByteArraySerializer; around any other serializer"
            + " use EncryptingSerializer");
  }

  private static void checkStrings(Map<String, ?> settings) {
    String partitioner = ClientClasses.name(settings, ProducerConfig.PARTITIONER_CLASS_CONFIG);
    if (!partitioner.equals(EnvelopePartitioner.class.getName())) {
      throw ClientClasses.invalid(
          ProducerConfig.PARTITIONER_CLASS_CONFIG,
          "with StringSerializer, EncryptingProducerInterceptor needs "
              + EnvelopePartitioner.class.getName());
    }
    for (String setting : List.of("value.serializer.encoding", "serializer.encoding")) {
      Object encoding = settings.get(setting);
      if (encoding != null && !StandardCharsets.UTF_8.name().equals(encoding)) {
        throw ClientClasses.invalid(setting, "EncryptingProducerInterceptor takes UTF-8 only");
      }
    }
  }
}
