package dev.cipherlane.integration;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.testing.KafkaClients;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.UUID;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** Transactions and exactly-once, encrypted. */
@ExtendWith(Real.class)
class TransactionsTest {
  private static final int RECORDS = 60;

  private final String input = "input-" + UUID.randomUUID();
  private final String output = "output-" + UUID.randomUUID();
  private final Map<String, Object> committed =
      KafkaClients.with(Real.consuming(), "isolation.level", "read_committed");

  private static KafkaProducer<byte[], byte[]> transactional() {
    KafkaProducer<byte[], byte[]> producer =
        new KafkaProducer<>(
            KafkaClients.with(Real.producing(), "transactional.id", UUID.randomUUID().toString()));
    producer.initTransactions();
    return producer;
  }

  @Test
  void abortedRecordsAreNotReadAndCommittedOnesAre() throws Exception {
    try (KafkaProducer<byte[], byte[]> producer = transactional();
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(committed)) {
      producer.beginTransaction();
      producer.send(new ProducerRecord<>(input, Real.bytes("aborted"))).get();
      producer.abortTransaction();
      producer.beginTransaction();
      producer.send(new ProducerRecord<>(input, Real.bytes("committed"))).get();
      producer.commitTransaction();
      assertThat(KafkaClients.read(consumer, input, 1))
          .extracting(record -> Real.string(record.value()))
          .containsExactly("committed");
    }
    assertThat(Real.decrypted(input, 2)).hasSize(2);
  }

  @Test
  void whatIsReadAndWrittenInTransactionsComesOutOnce() throws Exception {
    // CL-KAF-012 CL-KAF-021
    List<String> canaries =
        IntStream.range(0, RECORDS).mapToObj(i -> UUID.randomUUID() + " " + i).toList();
    writeInput(canaries);
    Map<String, Object> reading =
        KafkaClients.with(committed, "max.poll.records", 7, "cipherlane.failure.action", "skip");
    try (KafkaProducer<byte[], byte[]> producer = transactional()) {
      int attempts = 0;
      while (committedOffset(reading) < RECORDS + 1) {
        copy(producer, reading, ++attempts % 3 == 0);
        assertThat(attempts).isLessThan(100);
      }
    }
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(committed)) {
      List<String> copied =
          KafkaClients.read(consumer, output, RECORDS).stream()
              .map(r -> Real.string(r.value()))
              .toList();
      assertThat(copied).hasSize(RECORDS);
      assertThat(new TreeSet<>(copied)).isEqualTo(new TreeSet<>(canaries));
    }
    Real.assertNotStored(canaries);
  }

  /** The values, and in their middle one that nobody can read. */
  private void writeInput(List<String> values) throws Exception {
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(Real.producing());
        KafkaProducer<byte[], byte[]> plain =
            new KafkaProducer<>(KafkaClients.with(Real.producing(), "interceptor.classes", ""))) {
      for (String value : values) {
        if (value.endsWith(" 30")) {
          plain.send(new ProducerRecord<>(input, Real.bytes("injected"))).get();
        }
        producer.send(new ProducerRecord<>(input, Real.bytes(value))).get();
      }
    }
  }

  private long committedOffset(Map<String, Object> reading) {
    TopicPartition partition = new TopicPartition(input, 0);
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(reading)) {
      OffsetAndMetadata offset = consumer.committed(java.util.Set.of(partition)).get(partition);
      return offset == null ? 0 : offset.offset();
    }
  }

  /** Copies some polls in transactions of their own, and aborts the last one if told to. */
  private void copy(
      KafkaProducer<byte[], byte[]> producer, Map<String, Object> reading, boolean abort) {
    TopicPartition partition = new TopicPartition(input, 0);
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(reading)) {
      consumer.assign(List.of(partition));
      for (int i = 0; i < 4; i++) {
        ConsumerRecords<byte[], byte[]> batch = consumer.poll(Duration.ofMillis(500));
        producer.beginTransaction();
        for (ConsumerRecord<byte[], byte[]> record : batch) {
          // Committing fails if this does.
          var unused = producer.send(new ProducerRecord<>(output, record.value()));
        }
        if (abort) {
          producer.abortTransaction();
          return;
        }
        producer.sendOffsetsToTransaction(
            Map.of(partition, new OffsetAndMetadata(consumer.position(partition))),
            consumer.groupMetadata());
        producer.commitTransaction();
      }
    }
  }
}
