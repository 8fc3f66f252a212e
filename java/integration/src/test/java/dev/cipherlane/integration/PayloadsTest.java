package dev.cipherlane.integration;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import dev.cipherlane.kafka.DecryptingDeserializer;
import dev.cipherlane.kafka.EncryptingSerializer;
import dev.cipherlane.testing.KafkaClients;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import java.util.UUID;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.connect.json.JsonDeserializer;
import org.apache.kafka.connect.json.JsonSerializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Avro, Protobuf and JSON: the wrapped serializer is whatever the application has. */
@ExtendWith(Real.class)
class PayloadsTest {
  private final String topic = "payloads-" + UUID.randomUUID();
  private final String canary = "canary " + UUID.randomUUID();

  /** Avro's own binary encoding. */
  public static final class Avro implements Serializer<GenericRecord>, Deserializer<GenericRecord> {
    static final Schema SCHEMA =
        SchemaBuilder.record("Claim")
            .fields()
            .requiredString("text")
            .requiredLong("cents")
            .endRecord();

    @Override
    public byte[] serialize(String topic, GenericRecord value) {
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
      try {
        new GenericDatumWriter<GenericRecord>(SCHEMA).write(value, encoder);
        encoder.flush();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
      return out.toByteArray();
    }

    @Override
    public GenericRecord deserialize(String topic, byte[] value) {
      try {
        return new GenericDatumReader<GenericRecord>(SCHEMA)
            .read(null, DecoderFactory.get().binaryDecoder(value, null));
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }

    @Override
    public void configure(java.util.Map<String, ?> settings, boolean isKey) {
      // Has none.
    }

    @Override
    public void close() {
      // Holds nothing.
    }
  }

  /** Protobuf's own encoding. */
  public static final class Protobuf implements Serializer<Struct>, Deserializer<Struct> {
    @Override
    public byte[] serialize(String topic, Struct value) {
      return value.toByteArray();
    }

    @Override
    public Struct deserialize(String topic, byte[] value) {
      try {
        return Struct.parseFrom(value);
      } catch (InvalidProtocolBufferException e) {
        throw new UncheckedIOException(e);
      }
    }

    @Override
    public void configure(java.util.Map<String, ?> settings, boolean isKey) {
      // Has none.
    }

    @Override
    public void close() {
      // Holds nothing.
    }
  }

  private <T> void assertComesBack(T value, Class<?> serializer, Class<?> deserializer)
      throws Exception {
    try (KafkaProducer<byte[], T> producer =
            new KafkaProducer<>(
                KafkaClients.with(
                    Real.producing(),
                    "interceptor.classes",
                    "",
                    "value.serializer",
                    EncryptingSerializer.class,
                    "cipherlane.value.serializer",
                    serializer));
        KafkaConsumer<byte[], T> consumer =
            new KafkaConsumer<>(
                KafkaClients.with(
                    Real.consuming(),
                    "interceptor.classes",
                    "",
                    "value.deserializer",
                    DecryptingDeserializer.class,
                    "cipherlane.value.deserializer",
                    deserializer))) {
      producer.send(new ProducerRecord<>(topic, value)).get();
      assertThat(KafkaClients.read(consumer, topic, 1).get(0).value()).isEqualTo(value);
    }
    Real.assertEnvelopes(topic, 1);
    Real.assertNotStored(List.of(canary));
  }

  @Test
  void avro() throws Exception {
    GenericRecord value =
        new GenericRecordBuilder(Avro.SCHEMA).set("text", canary).set("cents", 99L).build();
    // Avro reads strings as Utf8, which equals no String: compared as records are, by schema.
    GenericRecord read = new Avro().deserialize(topic, new Avro().serialize(topic, value));
    assertComesBack(read, Avro.class, Avro.class);
  }

  @Test
  void protobuf() throws Exception {
    Struct value =
        Struct.newBuilder()
            .putFields("text", Value.newBuilder().setStringValue(canary).build())
            .build();
    assertComesBack(value, Protobuf.class, Protobuf.class);
  }

  @Test
  void json() throws Exception {
    JsonNode value = new ObjectMapper().createObjectNode().put("text", canary).put("cents", 99);
    assertComesBack(value, JsonSerializer.class, JsonDeserializer.class);
  }
}
