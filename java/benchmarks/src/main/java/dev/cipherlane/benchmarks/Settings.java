// The producers' properties and payload files, in the benchmark's temporary folder.
package dev.cipherlane.benchmarks;

import dev.cipherlane.testing.BrokerProcess;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Files that the benchmark makes and removes. */
final class Settings {
  private static final int FIRST_LETTER = 'a';
  private static final int LETTERS = 26;
  private static final String PRODUCER = System.getProperty("producer", "");
  private static final String ENCRYPTING = "dev.cipherlane.kafka.EncryptingProducerInterceptor";
  private static final String DECRYPTING = "dev.cipherlane.kafka.DecryptingConsumerInterceptor";
  private static final int MIN_LINES = 10;
  private static final int MAX_LINES = 200;
  private static final int PAYLOAD_BYTES = 2_000_000;
  private static final long SEED = 20_261_121;

  private Settings() {}

  /** The properties of a client: Kafka's defaults, but for the operation's own and the row's. */
  static Path of(
      Path folder,
      BrokerProcess broker,
      KeyServiceProcess keyService,
      Operation operation,
      BenchKafka.Row row)
      throws IOException {
    boolean consumes = operation == Operation.CONSUME;
    var settings = new TreeMap<>(Map.of("bootstrap.servers", broker.bootstrap()));
    if (!consumes) {
      settings.put("acks", "1");
      add(settings, operation.settings());
      addChosen(settings);
    }
    if (row == BenchKafka.Row.ENCRYPTED) {
      settings.putAll(encrypting(keyService, consumes));
    }
    return write(folder.resolve(operation.label() + "-" + row.label() + ".properties"), settings);
  }

  /** What makes a client encrypt, or decrypt. */
  static Map<String, String> encrypting(KeyServiceProcess keyService, boolean consumes) {
    var settings = new TreeMap<>(keyService.settings(consumes ? "consumer" : "producer"));
    settings.put("interceptor.classes", consumes ? DECRYPTING : ENCRYPTING);
    return settings;
  }

  /** A producer in this Java machine. */
  static KafkaProducer<byte[], byte[]> producer(
      BrokerProcess broker, KeyServiceProcess keyService, BenchKafka.Row row) {
    Map<String, Object> settings = new HashMap<>();
    settings.put("bootstrap.servers", broker.bootstrap());
    settings.put("acks", "1");
    if (row == BenchKafka.Row.ENCRYPTED) {
      settings.putAll(encrypting(keyService, false));
    }
    return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
  }

  /** Adds what is written as {@code a=b,c=d}. */
  static void add(Map<String, String> settings, String more) {
    for (String setting : more.isEmpty() ? new String[0] : more.split(",")) {
      String[] parts = setting.split("=", 2);
      settings.put(parts[0], parts[1]);
    }
  }

  /** Adds what the caller has all producers set beside a benchmark's own. */
  static void addChosen(Map<String, String> settings) {
    add(settings, PRODUCER);
  }

  static Path write(Path file, Map<String, String> settings) throws IOException {
    return Files.write(
        file, settings.entrySet().stream().map(e -> e.getKey() + "=" + e.getValue()).toList());
  }

  /** A file of lines of random letters, each of {@code size} bytes. */
  static Path payload(Path folder, int size, int lines) throws IOException {
    var random = new Random(SEED);
    return Files.write(
        folder.resolve("payload-" + size),
        IntStream.range(0, lines).mapToObj(i -> line(random, size)).collect(Collectors.toList()));
  }

  /** So many lines that they differ, and so few that reading the file is no part of a run. */
  static Path payload(Path folder, int size) throws IOException {
    return payload(folder, size, Math.min(MAX_LINES, Math.max(MIN_LINES, PAYLOAD_BYTES / size)));
  }

  private static String line(Random random, int size) {
    return random
        .ints(size, FIRST_LETTER, FIRST_LETTER + LETTERS)
        .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append)
        .toString();
  }

  static void delete(Path folder) throws IOException {
    try (var paths = Files.walk(folder)) {
      paths.sorted(Comparator.reverseOrder()).forEach(Settings::deleteOne);
    }
  }

  private static void deleteOne(Path path) {
    try {
      Files.delete(path);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
