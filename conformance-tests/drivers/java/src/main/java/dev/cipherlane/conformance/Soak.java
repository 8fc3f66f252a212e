// Writing and reading for an hour: nothing is kept of a record but a count.
package dev.cipherlane.conformance;

import com.google.gson.JsonObject;
import dev.cipherlane.kafka.DecryptingConsumerInterceptor;
import dev.cipherlane.kafka.EncryptingProducerInterceptor;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

final class Soak {
  /** Looking for the file takes longer than writing a record. */
  private static final int LOOK_EVERY = 100;

  private Soak() {}

  static JsonObject write(JsonObject request) {
    Map<String, Object> settings = KafkaOperations.settings(request, Set.of("isolation.level"));
    settings.put("interceptor.classes", EncryptingProducerInterceptor.class.getName());
    AtomicLong acknowledged = new AtomicLong();
    AtomicLong failed = new AtomicLong();
    long refused = 0;
    JsonObject reasons = new JsonObject();
    long written = 0;
    try (var producer =
        new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
      long begun = System.nanoTime();
      for (long tried = 0; tried % LOOK_EVERY != 0 || goesOn(request); tried++) {
        try {
          var unused =
              producer.send(
                  new ProducerRecord<>(topic(request), 0, null, value(request, written)),
                  (sent, error) -> (error == null ? acknowledged : failed).incrementAndGet());
          written++;
        } catch (RuntimeException e) {
          refused++;
          count(reasons, e);
        }
        pause(begun + tried * TimeUnit.SECONDS.toNanos(1) / request.get("rate").getAsLong());
      }
    }
    JsonObject numbers = new JsonObject();
    numbers.addProperty("acknowledged", acknowledged.get());
    numbers.addProperty("refused", refused);
    numbers.addProperty("failed", failed.get());
    numbers.add("reasons", reasons);
    return numbers;
  }

  static JsonObject read(JsonObject request) {
    Map<String, Object> settings = KafkaOperations.settings(request, KafkaOperations.PRODUCER_ONLY);
    settings.put("interceptor.classes", DecryptingConsumerInterceptor.class.getName());
    settings.put("enable.auto.commit", false);
    long[] counts = new long[3]; // read, wrong, unreadable
    JsonObject reasons = new JsonObject();
    try (var consumer =
        new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      TopicPartition partition = new TopicPartition(topic(request), 0);
      consumer.assign(List.of(partition));
      consumer.seekToBeginning(List.of(partition));
      while (goesOn(request)) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(500))) {
          byte[] expected = value(request, counts[0] + counts[1] + counts[2]);
          counts[judge(record, expected, reasons)]++;
        }
      }
    }
    JsonObject numbers = new JsonObject();
    numbers.addProperty("read", counts[0]);
    numbers.addProperty("wrong", counts[1]);
    numbers.addProperty("unreadable", counts[2]);
    numbers.add("reasons", reasons);
    return numbers;
  }

  private static int judge(
      ConsumerRecord<byte[], byte[]> record, byte[] expected, JsonObject reasons) {
    try {
      return Arrays.equals(record.value(), expected) ? 0 : 1;
    } catch (RuntimeException e) {
      count(reasons, e);
      return 2;
    }
  }

  private static void count(JsonObject reasons, RuntimeException failure) {
    String code = DriverException.code(failure);
    long before = reasons.has(code) ? reasons.get(code).getAsLong() : 0;
    reasons.addProperty(code, before + 1);
  }

  private static byte[] value(JsonObject request, long number) {
    byte[] prefix = Driver.bytes(request.get("value"));
    return ByteBuffer.allocate(prefix.length + Long.BYTES).put(prefix).putLong(number).array();
  }

  private static String topic(JsonObject request) {
    return request.get("topic").getAsString();
  }

  private static boolean goesOn(JsonObject request) {
    return Files.exists(Path.of(request.get("while").getAsString()));
  }

  private static void pause(long until) {
    try {
      TimeUnit.NANOSECONDS.sleep(until - System.nanoTime());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
