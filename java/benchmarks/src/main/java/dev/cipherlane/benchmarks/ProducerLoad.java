package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Producers that each send as fast as they can: {@code run TOPIC RECORDS PAYLOAD_FILE}. Tells the
 * response times of some records, from when the producer took them.
 */
final class ProducerLoad implements Load {
  private static final int TIMED = 64; // one of so many: looking at the clock would cost the others

  private final Pool<KafkaProducer<byte[], byte[]>> producers;

  ProducerLoad(int count, Properties configuration) {
    producers = Producers.open(count, configuration);
  }

  @Override
  public Map<String, Double> run(List<String> arguments) throws Exception {
    String topic = arguments.get(0);
    int share = Integer.parseInt(arguments.get(1)) / producers.clients().size();
    List<byte[]> values = Producers.values(arguments.get(2));
    ResponseTimes times = new ResponseTimes();
    producers.each(producer -> send(producer, topic, share, values, times));
    return times.figures();
  }

  private static void send(
      KafkaProducer<byte[], byte[]> producer,
      String topic,
      int records,
      List<byte[]> values,
      ResponseTimes times)
      throws Exception {
    AtomicReference<Exception> failure = new AtomicReference<>();
    Callback quick = (metadata, e) -> failure.compareAndSet(null, e);
    for (int i = 0; i < records; i++) {
      byte[] value = values.get(i % values.size());
      Callback done = i % TIMED == 0 ? timed(quick, times) : quick;
      var unused = producer.send(new ProducerRecord<>(topic, value), done);
    }
    producer.flush();
    if (failure.get() != null) {
      throw failure.get();
    }
  }

  private static Callback timed(Callback callback, ResponseTimes times) {
    long begin = System.nanoTime();
    return (metadata, e) -> {
      times.addSince(begin);
      callback.onCompletion(metadata, e);
    };
  }

  @Override
  public void close() throws IOException {
    producers.close();
  }
}
