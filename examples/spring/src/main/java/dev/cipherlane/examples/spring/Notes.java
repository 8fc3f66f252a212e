// A Spring Kafka application that knows nothing of encryption: the interceptors stand in its
// properties.
package dev.cipherlane.examples.spring;

import java.io.FileReader;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;
import org.springframework.kafka.annotation.EnableKafka;
import org.springframework.kafka.annotation.KafkaListener;
import org.springframework.kafka.config.ConcurrentKafkaListenerContainerFactory;
import org.springframework.kafka.core.DefaultKafkaConsumerFactory;
import org.springframework.kafka.core.DefaultKafkaProducerFactory;
import org.springframework.kafka.core.KafkaTemplate;

/** Sends the lines of a file with a template, and writes what a listener hears to another file. */
@Configuration
@EnableKafka
public class Notes {
  private static final int WAIT_SECONDS = 60;

  /**
   * Runs until the listener has heard every line; exits with 1 if it does not.
   *
   * @param args producer's properties file, consumer's, input file, output file
   * @throws Exception what Kafka or the file system reports
   */
  @SuppressWarnings("unchecked")
  public static void main(String[] args) throws Exception {
    System.setProperty("notes.producer", args[0]);
    System.setProperty("notes.consumer", args[1]);
    System.setProperty("notes.output", args[3]);
    var lines = Files.readAllLines(Path.of(args[2]));
    System.setProperty("notes.count", Integer.toString(lines.size()));
    try (var application = new AnnotationConfigApplicationContext(Notes.class)) {
      KafkaTemplate<byte[], byte[]> template = application.getBean(KafkaTemplate.class);
      for (String line : lines) {
        template.send("notes", line.getBytes(StandardCharsets.UTF_8)).get();
      }
      if (!application.getBean(Listener.class).heard.await(WAIT_SECONDS, TimeUnit.SECONDS)) {
        throw new IllegalStateException("the listener did not hear every line");
      }
    }
  }

  @Bean
  DefaultKafkaProducerFactory<byte[], byte[]> producerFactory(Environment environment)
      throws IOException {
    return new DefaultKafkaProducerFactory<>(
        properties(environment.getRequiredProperty("notes.producer")),
        new ByteArraySerializer(),
        new ByteArraySerializer());
  }

  @Bean
  KafkaTemplate<byte[], byte[]> template(
      DefaultKafkaProducerFactory<byte[], byte[]> producerFactory) {
    return new KafkaTemplate<>(producerFactory);
  }

  @Bean
  ConcurrentKafkaListenerContainerFactory<byte[], byte[]> kafkaListenerContainerFactory(
      Environment environment) throws IOException {
    var factory = new ConcurrentKafkaListenerContainerFactory<byte[], byte[]>();
    factory.setConsumerFactory(
        new DefaultKafkaConsumerFactory<>(
            properties(environment.getRequiredProperty("notes.consumer")),
            new ByteArrayDeserializer(),
            new ByteArrayDeserializer()));
    return factory;
  }

  @Bean
  Listener listener(Environment environment) throws IOException {
    return new Listener(
        new PrintStream(environment.getRequiredProperty("notes.output"), StandardCharsets.UTF_8),
        environment.getRequiredProperty("notes.count", Integer.class));
  }

  private static Map<String, Object> properties(String file) throws IOException {
    Properties properties = new Properties();
    try (var reader = new FileReader(file, StandardCharsets.UTF_8)) {
      properties.load(reader);
    }
    Map<String, Object> settings = new HashMap<>();
    properties.forEach((name, value) -> settings.put((String) name, value));
    return settings;
  }

  /** Writes what it hears. */
  static final class Listener {
    private final PrintStream output;
    private final CountDownLatch heard;

    Listener(PrintStream output, int count) {
      this.output = output;
      this.heard = new CountDownLatch(count);
    }

    @KafkaListener(topics = "notes", groupId = "notes")
    void hear(byte[] value) {
      output.println(new String(value, StandardCharsets.UTF_8));
      heard.countDown();
    }
  }
}
