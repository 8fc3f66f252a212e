// A plain Kafka consumer: it knows nothing of encryption, as its twin, the producer.
package dev.cipherlane.examples;

import java.io.FileReader;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Reads a number of records and writes them to a file, one `key TAB value` a line. */
public final class ClaimsConsumer {
  private static final Duration POLL = Duration.ofMillis(500);
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  private ClaimsConsumer() {}

  /**
   * Runs the consumer; exits with 1 and the reason when a record cannot be read.
   *
   * @param args properties file, topic, number of records, output file
   * @throws IOException if the properties or the output file fail
   */
  public static void main(String[] args) throws IOException {
    if (args.length != 4) {
      System.err.println("usage: ClaimsConsumer PROPERTIES TOPIC COUNT OUTPUT");
      System.exit(2);
    }
    try (var consumer = consumer(args[0]);
        var output = new PrintStream(args[3], StandardCharsets.UTF_8)) {
      consumer.subscribe(List.of(args[1]));
      System.out.println("read " + readAll(consumer, Integer.parseInt(args[2]), output));
    } catch (KafkaException failure) {
      System.err.println(failure.getMessage());
      System.exit(1);
    }
  }

  private static KafkaConsumer<byte[], byte[]> consumer(String file) throws IOException {
    Properties properties = new Properties();
    try (var reader = new FileReader(file, StandardCharsets.UTF_8)) {
      properties.load(reader);
    }
    return new KafkaConsumer<>(
        properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
  }

  private static int readAll(
      KafkaConsumer<byte[], byte[]> consumer, int count, PrintStream output) {
    Instant giveUp = Instant.now().plus(PATIENCE);
    int read = 0;
    while (read < count && Instant.now().isBefore(giveUp)) {
      for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
        output.println(text(record.key()) + "\t" + text(record.value()));
        read++;
      }
    }
    return read;
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8);
  }
}
