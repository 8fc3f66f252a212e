package dev.cipherlane.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.testing.KafkaClients;
import dev.cipherlane.testing.SegmentScanner;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** What works: producer, broker, key service and consumer, all real. */
@ExtendWith(Cluster.class)
class EndToEndTest {
  private final String topic = "encrypted." + UUID.randomUUID();

  @Test
  void consumerReadsWhatProducerWroteAndTheBrokerStoresEnvelopes() throws IOException {
    String canary = "canary " + UUID.randomUUID();
    try (KafkaProducer<byte[], byte[]> producer = Clients.producer()) {
      Clients.send(
          producer,
          IntStream.range(0, 100)
              .mapToObj(i -> new ProducerRecord<byte[], byte[]>(topic, bytes(canary + i)))
              .toList());
    }

    try (KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      List<ConsumerRecord<byte[], byte[]>> records = KafkaClients.read(consumer, topic, 100);
      assertThat(records)
          .extracting(record -> new String(record.value(), StandardCharsets.UTF_8))
          .containsExactlyElementsOf(IntStream.range(0, 100).mapToObj(i -> canary + i).toList());
    }
    assertThat(Clients.stored(topic, 100))
        .hasSize(100)
        .allSatisfy(value -> assertThat(value).startsWith(0xC1, 0x9E, 1, 0));
    var scan = new SegmentScanner(List.of(bytes(canary))).scan(Cluster.broker().logDir());
    assertThat(scan.bytes()).isGreaterThan(100 * 100);
    assertThat(scan.hits()).isEmpty();
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }
}
