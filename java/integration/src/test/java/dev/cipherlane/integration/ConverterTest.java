package dev.cipherlane.integration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.kafka.EncryptingConverter;
import dev.cipherlane.testing.KafkaClients;
import java.util.Arrays;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.storage.StringConverter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The converter of Kafka Connect, by itself: good and bad values and settings. */
@ExtendWith(Real.class)
class ConverterTest {
  private final String topic = "converted-" + UUID.randomUUID();

  private static EncryptingConverter converter(Object... more) {
    EncryptingConverter converter = new EncryptingConverter();
    converter.configure(settings(more), false);
    return converter;
  }

  private static Map<String, Object> settings(Object... more) {
    return KafkaClients.with(
        KafkaClients.with(
            Real.cipherlane(), "cipherlane.value.converter", StringConverter.class.getName()),
        more);
  }

  @Test
  void structuresKeepTheirSchemas() {
    Schema schema = SchemaBuilder.struct().field("name", Schema.STRING_SCHEMA).build();
    Struct value = new Struct(schema).put("name", "Ada");
    try (EncryptingConverter converter =
        converter("cipherlane.value.converter", JsonConverter.class, "schemas.enable", "true")) {
      byte[] stored = converter.fromConnectData(topic, new RecordHeaders(), schema, value);
      assertThat(stored).startsWith(0xC1, 0x9E);
      assertThat(converter.toConnectData(topic, new RecordHeaders(), stored).value())
          .isEqualTo(value);
    }
  }

  @Test
  void nullStaysNull() { // CL-ENV-040
    try (EncryptingConverter converter = converter()) {
      byte[] stored = converter.fromConnectData(topic, Schema.OPTIONAL_STRING_SCHEMA, null);
      assertThat(stored).isNull();
      assertThat(converter.toConnectData(topic, null).value()).isNull();
    }
  }

  @Test
  void whatIsBrokenIsDataThatMayBeTolerated() { // CL-KAF-013
    try (EncryptingConverter converter = converter()) {
      byte[] good = converter.fromConnectData(topic, Schema.STRING_SCHEMA, "value");
      byte[] changed = good.clone();
      changed[50] ^= 1;
      for (byte[] bad :
          new byte[][] {changed, Arrays.copyOf(good, 20), Real.bytes("injected"), new byte[0]}) {
        assertThatThrownBy(() -> converter.toConnectData(topic, bad))
            .isInstanceOf(DataException.class)
            .hasMessageContaining(bad == changed ? "authentication-failed" : "-");
      }
    }
  }

  @Test
  void whatConcernsAllRecordsEndsTheTask() { // CL-KAF-001 CL-KAF-020
    byte[] good;
    try (EncryptingConverter converter = converter()) {
      good = converter.fromConnectData(topic, Schema.STRING_SCHEMA, "value");
    }
    try (EncryptingConverter stranger = converter(Real.strangers())) {
      assertThatThrownBy(() -> stranger.toConnectData(topic, good))
          .isInstanceOf(Error.class)
          .hasMessageContaining(topic)
          .hasMessageContaining("not-authorized");
      assertThatThrownBy(() -> stranger.fromConnectData(topic, Schema.STRING_SCHEMA, "value"))
          .isInstanceOf(Error.class)
          .hasMessageContaining("not-authorized");
    }
  }

  @ParameterizedTest
  @CsvSource({
    "cipherlane.value.converter, java.lang.String",
    "cipherlane.value.converter, ",
    "cipherlane.failure.action, skip",
    "cipherlane.keyservice.urls, http://127.0.0.1:1"
  })
  void wrongSettingsAreRefused(String name, String value) { // CL-CFG-002 CL-KAF-026
    assertThatThrownBy(() -> converter(name, value).close())
        .isInstanceOf(ConfigException.class)
        .hasMessageContaining("configuration-invalid")
        .hasMessageContaining(name);
  }

  @Test
  void keysAreNeverEncrypted() { // CL-KAF-006
    try (EncryptingConverter converter = new EncryptingConverter()) {
      assertThatThrownBy(() -> converter.configure(settings(), true))
          .isInstanceOf(ConfigException.class)
          .hasMessageContaining("record keys are never encrypted");
    }
  }
}
