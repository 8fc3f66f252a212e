package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/** Producers that each send as fast as they can: {@code run TOPIC RECORDS PAYLOAD_FILE}. */
final class ProducerLoad implements Load {
  private final Pool<KafkaProducer<byte[], byte[]>> producers;

  ProducerLoad(int count, Properties configuration) {
    producers = Producers.open(count, configuration);
  }

  @Override
  public Map<String, Double> run(List<String> arguments) throws Exception {
    String topic = arguments.get(0);
    int share = Integer.parseInt(arguments.get(1)) / producers.clients().size();
    List<byte[]> values = Producers.values(arguments.get(2));
    producers.each(producer -> send(producer, topic, share, values));
    return Map.of();
  }

  private static void send(
      KafkaProducer<byte[], byte[]> producer, String topic, int records, List<byte[]> values)
      throws Exception {
    AtomicReference<Exception> failure = new AtomicReference<>();
    for (int i = 0; i < records; i++) {
      byte[] value = values.get(i % values.size());
      var unused =
          producer.send(
              new ProducerRecord<>(topic, value), (metadata, e) -> failure.compareAndSet(null, e));
    }
    producer.flush();
    if (failure.get() != null) {
      throw failure.get();
    }
  }

  @Override
  public void close() throws IOException {
    producers.close();
  }
}
