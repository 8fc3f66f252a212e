package dev.cipherlane.integration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.kafka.DecryptingDeserializer;
import dev.cipherlane.kafka.RecordDecryptionException;
import dev.cipherlane.testing.KafkaClients;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Share consumers, which know no interceptors: the deserializer. */
@ExtendWith(Real.class)
class ShareConsumerTest {
  private static final Duration WAIT = Duration.ofSeconds(30);

  private final String topic = "shared-" + UUID.randomUUID();
  private final String group = "share-" + UUID.randomUUID();

  private Map<String, Object> settings() {
    Map<String, Object> settings =
        KafkaClients.with(
            Real.consuming(),
            "group.id",
            group,
            "value.deserializer",
            DecryptingDeserializer.class,
            "cipherlane.value.deserializer",
            StringDeserializer.class);
    // None of which share consumers have.
    settings
        .keySet()
        .removeAll(List.of("interceptor.classes", "auto.offset.reset", "enable.auto.commit"));
    return settings;
  }

  /** Share groups begin at the end of a topic unless told otherwise. */
  private void readFromTheBeginning() throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", Real.bootstrap()))) {
      ConfigEntry earliest = new ConfigEntry("share.auto.offset.reset", "earliest");
      admin
          .incrementalAlterConfigs(
              Map.of(
                  new ConfigResource(ConfigResource.Type.GROUP, group),
                  List.of(new AlterConfigOp(earliest, AlterConfigOp.OpType.SET))))
          .all()
          .get();
    }
  }

  private void write(String interceptor, String... values) throws Exception {
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(
            KafkaClients.with(Real.producing(), "interceptor.classes", interceptor))) {
      for (String value : values) {
        producer.send(new ProducerRecord<>(topic, Real.bytes(value))).get();
      }
    }
  }

  @Test
  void everyRecordIsReadByOneOfTwo() throws Exception {
    String interceptor = (String) Real.producing().get("interceptor.classes");
    String[] values = new String[20];
    java.util.Arrays.setAll(values, i -> "canary " + i + " " + UUID.randomUUID());
    readFromTheBeginning();
    write(interceptor, values);
    List<String> read = new ArrayList<>();
    try (KafkaShareConsumer<byte[], String> one = new KafkaShareConsumer<>(settings());
        KafkaShareConsumer<byte[], String> two = new KafkaShareConsumer<>(settings())) {
      one.subscribe(List.of(topic));
      two.subscribe(List.of(topic));
      long end = System.nanoTime() + WAIT.toNanos();
      while (read.size() < values.length && System.nanoTime() < end) {
        for (KafkaShareConsumer<byte[], String> consumer : List.of(one, two)) {
          for (ConsumerRecord<byte[], String> record : consumer.poll(Duration.ofMillis(200))) {
            read.add(record.value());
          }
        }
      }
    }
    assertThat(read).containsExactlyInAnyOrder(values);
    Real.assertNotStored(List.of(values));
  }

  @Test
  void whatCannotBeDecryptedIsToldAndNotHandedOver() throws Exception { // CL-KAF-013
    readFromTheBeginning();
    write("", "injected");
    try (KafkaShareConsumer<byte[], String> consumer = new KafkaShareConsumer<>(settings())) {
      consumer.subscribe(List.of(topic));
      assertThatThrownBy(
              () -> {
                for (int i = 0; i < 100; i++) {
                  assertThat(consumer.poll(Duration.ofMillis(200)).isEmpty()).isTrue();
                }
              })
          .hasStackTraceContaining(RecordDecryptionException.class.getName())
          .hasStackTraceContaining("plaintext-rejected");
    }
  }

  @Test
  void interceptorsAreRefusedByKafkaItself() {
    Map<String, Object> settings =
        KafkaClients.with(
            settings(), "interceptor.classes", Real.consuming().get("interceptor.classes"));
    assertThatThrownBy(() -> new KafkaShareConsumer<byte[], String>(settings).close())
        .isInstanceOf(KafkaException.class)
        .hasStackTraceContaining("interceptor.classes");
  }
}
