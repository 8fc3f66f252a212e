package dev.cipherlane.integration;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.testing.KafkaClients;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.connect.mirror.MirrorMaker;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/**
 * MirrorMaker 2 has no keys and copies envelopes, under another topic's name. Whether the copy is
 * readable is the policy's decision: by the scope of both names. Both "clusters" are one broker.
 */
@ExtendWith(Real.class)
class MirrorMakerTest {
  /** The policy maps {@code mirrored} and {@code source.mirrored} to one scope, not these. */
  private static final String FOREIGN = "unmapped";

  @TempDir Path folder;

  private static Map<String, Object> settings() {
    Map<String, Object> settings = new HashMap<>();
    settings.put("clusters", "source,target");
    settings.put("source.bootstrap.servers", Real.bootstrap());
    settings.put("target.bootstrap.servers", Real.bootstrap());
    settings.put("source->target.enabled", "true");
    settings.put("target->source.enabled", "false");
    settings.put("source->target.topics", "mirrored," + FOREIGN);
    settings.put("replication.factor", "1");
    settings.put("refresh.topics.interval.seconds", "1");
    settings.put("emit.heartbeats.enabled", "false");
    settings.put("emit.checkpoints.enabled", "false");
    settings.put("sync.topic.configs.enabled", "false");
    settings.put("sync.topic.acls.enabled", "false");
    for (String topic : List.of("offset-syncs.topic", "checkpoints.topic", "heartbeats.topic")) {
      settings.put(topic + ".replication.factor", "1");
    }
    for (String storage : List.of("offset", "status", "config")) {
      settings.put(storage + ".storage.replication.factor", "1");
    }
    for (String storage : List.of("offset", "status")) {
      settings.put(storage + ".storage.partitions", "1");
    }
    return settings;
  }

  @Test
  void renamedCopyIsReadableWhereTheScopeIsTheSame() throws Exception { // CL-ENV-008 CL-KAF-030
    String canary = "canary " + UUID.randomUUID();
    try (KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(
            KafkaClients.with(Real.producing(), "cipherlane.record.key.topics", "mirrored"))) {
      for (int i = 0; i < 20; i++) {
        byte[] key = i == 0 ? null : Real.bytes("key " + i);
        producer.send(new ProducerRecord<>("mirrored", key, Real.bytes(canary + i))).get();
      }
      producer.send(new ProducerRecord<>(FOREIGN, Real.bytes(canary))).get();
    }
    try (Child mirror =
        Child.start(
            folder,
            MirrorMaker.class.getName(),
            Child.properties(folder.resolve("mm2.properties"), settings()))) {
      mirror.await(
          "copy", () -> copied("source.mirrored") >= 20 && copied("source." + FOREIGN) >= 1);
    }
    assertCopies(canary);
    Real.assertNotStored(List.of(canary));
  }

  private static void assertCopies(String canary) {
    List<ConsumerRecord<byte[], byte[]>> copies = Real.decrypted("source.mirrored", 20);
    assertThat(copies).hasSize(20);
    for (int i = 0; i < 20; i++) {
      assertThat(Real.string(copies.get(i).key())).isEqualTo(i == 0 ? null : "key " + i);
      assertThat(Real.string(copies.get(i).value())).isEqualTo(canary + i);
    }
    assertThat(Real.stored("source.mirrored", 20))
        .allSatisfy(record -> assertThat(record.value()[3]).as("key bound").isEqualTo((byte) 4));
    ConsumerRecord<byte[], byte[]> foreign = Real.decrypted("source." + FOREIGN, 1).get(0);
    assertThatThrownBy(foreign::value).hasMessageContaining("scope-mismatch");
  }

  private static long copied(String topic) throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", Real.bootstrap()))) {
      if (!admin.listTopics().names().get().contains(topic)) {
        return 0;
      }
    }
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(Real.consuming())) {
      return Real.ends(consumer, topic);
    }
  }
}
