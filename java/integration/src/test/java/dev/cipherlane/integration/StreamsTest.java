package dev.cipherlane.integration;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.kafka.DecryptingConsumerInterceptor;
import dev.cipherlane.kafka.EncryptingProducerInterceptor;
import dev.cipherlane.testing.KafkaClients;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Materialized;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/**
 * A Streams application that knows nothing of encryption: {@code interceptor.classes} encrypts its
 * input, output, repartition and changelog topics.
 */
@ExtendWith(Real.class)
class StreamsTest {
  private static final int PATIENTS = 5;
  private static final int ROUNDS = 8;
  private static final Duration WAIT = Duration.ofSeconds(60);

  @TempDir Path folder;

  private final String application = "app-" + UUID.randomUUID();
  private final String input = application + "-input";
  private final String output = application + "-output";
  private final List<String> canaries = new ArrayList<>();
  private final Map<String, String> expected = new HashMap<>();

  /** Visits come keyed by clinic; what was said is gathered for each patient. */
  private Topology topology() {
    StreamsBuilder builder = new StreamsBuilder();
    builder.<String, String>stream(input)
        .map((clinic, visit) -> KeyValue.pair(visit.substring(0, visit.indexOf(':')), visit))
        .groupByKey()
        .reduce((all, visit) -> all + "|" + visit, Materialized.as("histories"))
        .toStream()
        .to(output);
    return builder.build();
  }

  private Properties settings(String stateFolder) {
    Properties settings = new Properties();
    settings.putAll(Real.cipherlane());
    settings.put("bootstrap.servers", Real.bootstrap());
    settings.put("application.id", application);
    settings.put("state.dir", folder.resolve(stateFolder).toString());
    settings.put("default.key.serde", Serdes.StringSerde.class);
    settings.put("default.value.serde", Serdes.StringSerde.class);
    settings.put("processing.guarantee", "exactly_once_v2");
    settings.put("commit.interval.ms", "100");
    settings.put("auto.offset.reset", "earliest");
    settings.put("repartition.purge.interval.ms", "600000"); // So that there is something to see.
    settings.put("producer.interceptor.classes", EncryptingProducerInterceptor.class.getName());
    settings.put("consumer.interceptor.classes", DecryptingConsumerInterceptor.class.getName());
    return settings;
  }

  @Test
  void aggregatesRestartsAndRestores() throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", Real.bootstrap()))) {
      admin
          .createTopics(
              List.of(new NewTopic(input, 2, (short) 1), new NewTopic(output, 2, (short) 1)))
          .all()
          .get();
    }
    run("first", 0);
    // Another folder: the state comes back from the changelog topic alone.
    run("second", ROUNDS);
    List<String> ownTopics = ownTopics();
    assertThat(ownTopics).anyMatch(topic -> topic.endsWith("-changelog"));
    assertThat(ownTopics).anyMatch(topic -> topic.endsWith("-repartition"));
    for (String topic : ownTopics) {
      assertThat(Real.stored(topic, 1))
          .as(topic)
          .isNotEmpty()
          .filteredOn(record -> record.value() != null)
          .allSatisfy(record -> assertThat(record.value()).startsWith(0xC1, 0x9E));
    }
    Real.assertNotStored(canaries);
  }

  /** Writes some visits and runs the application until its output has them all. */
  private void run(String stateFolder, int firstRound) throws Exception {
    write(firstRound);
    try (KafkaStreams streams = new KafkaStreams(topology(), settings(stateFolder))) {
      streams.start();
      Map<String, String> latest = new HashMap<>();
      long end = System.nanoTime() + WAIT.toNanos();
      while (!latest.equals(expected) && System.nanoTime() < end) {
        latest.putAll(latest());
      }
      assertThat(latest).isEqualTo(expected);
    }
  }

  private void write(int firstRound) throws Exception {
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(Real.producing())) {
      for (int i = firstRound * PATIENTS; i < (firstRound + ROUNDS) * PATIENTS; i++) {
        String patient = "patient-" + i % PATIENTS;
        String canary = UUID.randomUUID().toString();
        String visit = patient + ":" + canary;
        canaries.add(canary);
        expected.merge(patient, visit, (all, one) -> all + "|" + one);
        // One clinic: its visits, and so each patient's, come in order.
        producer.send(new ProducerRecord<>(input, Real.bytes("clinic"), Real.bytes(visit))).get();
      }
    }
  }

  /** The newest output for each patient. */
  private Map<String, String> latest() {
    Map<String, String> latest = new HashMap<>();
    try (KafkaConsumer<byte[], byte[]> consumer =
        new KafkaConsumer<>(
            KafkaClients.with(Real.consuming(), "isolation.level", "read_committed"))) {
      for (ConsumerRecord<byte[], byte[]> record : KafkaClients.read(consumer, output, PATIENTS)) {
        latest.put(Real.string(record.key()), Real.string(record.value()));
      }
    }
    return latest;
  }

  private List<String> ownTopics() throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", Real.bootstrap()))) {
      return admin.listTopics().names().get().stream()
          .filter(name -> name.startsWith(application))
          .toList();
    }
  }
}
