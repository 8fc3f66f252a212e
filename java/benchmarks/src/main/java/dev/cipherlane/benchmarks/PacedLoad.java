package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;

/**
 * Producers that together send so many records a second, in turn: {@code run TOPIC RECORDS
 * PER_SECOND PAYLOAD_FILE}, each millisecond those that fall into it. A record's response time runs
 * from when it was due, so that one that had to wait for those before it counts as late.
 */
final class PacedLoad implements Load {
  // Records are due in bursts: waking up for each would take more of a core than sending does.
  private static final long TICK = TimeUnit.MILLISECONDS.toNanos(1);

  private final Pool<KafkaProducer<byte[], byte[]>> producers;

  PacedLoad(int count, Properties configuration) {
    producers = Producers.open(count, configuration);
  }

  @Override
  public Map<String, Double> run(List<String> arguments) throws Exception {
    int records = Integer.parseInt(arguments.get(1));
    long pace = TimeUnit.SECONDS.toNanos(1) / Integer.parseInt(arguments.get(2));
    ResponseTimes times = new ResponseTimes();
    AtomicLong failed = new AtomicLong();
    send(arguments.get(0), records, pace, Producers.values(arguments.get(3)), times, failed);
    producers.each(KafkaProducer::flush);
    if (failed.get() > 0) {
      throw new IllegalStateException(failed + " records failed");
    }
    return times.figures();
  }

  private void send(
      String topic,
      int records,
      long pace,
      List<byte[]> values,
      ResponseTimes times,
      AtomicLong failed) {
    List<KafkaProducer<byte[], byte[]>> all = producers.clients();
    long begin = System.nanoTime();
    for (int i = 0; i < records; i++) {
      long due = begin + i * pace / TICK * TICK;
      await(due);
      var unused =
          all.get(i % all.size())
              .send(
                  new ProducerRecord<>(topic, values.get(i % values.size())),
                  (metadata, e) -> {
                    times.addSince(due);
                    failed.addAndGet(e == null ? 0 : 1);
                  });
    }
  }

  private static void await(long due) {
    for (long left = due - System.nanoTime(); left > 0; left = due - System.nanoTime()) {
      LockSupport.parkNanos(left);
    }
  }

  @Override
  public void close() throws IOException {
    producers.close();
  }
}
