package dev.cipherlane.integration;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.kafka.DecryptingConsumerInterceptor;
import dev.cipherlane.kafka.EncryptingConverter;
import dev.cipherlane.kafka.EncryptingProducerInterceptor;
import dev.cipherlane.testing.KafkaClients;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.apache.kafka.connect.cli.ConnectStandalone;
import org.apache.kafka.connect.file.FileStreamSinkConnector;
import org.apache.kafka.connect.file.FileStreamSourceConnector;
import org.apache.kafka.connect.storage.StringConverter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/**
 * A standalone worker: file to topic to file, once with the worker's interceptors and once with the
 * converter of single connectors.
 */
@ExtendWith(Real.class)
class ConnectTest {
  private static final int LINES = 50;

  @TempDir Path folder;

  private final String byInterceptor = "connect-interceptor-" + UUID.randomUUID();
  private final String byConverter = "connect-converter-" + UUID.randomUUID();

  private Map<String, Object> worker() {
    Map<String, Object> settings = new HashMap<>();
    settings.put("bootstrap.servers", Real.bootstrap());
    settings.put("listeners", "http://127.0.0.1:0");
    settings.put("offset.storage.file.filename", folder.resolve("offsets"));
    settings.put("offset.flush.interval.ms", "500");
    settings.put("plugin.discovery", "service_load");
    settings.put("key.converter", StringConverter.class.getName());
    settings.put("value.converter", StringConverter.class.getName());
    settings.put("producer.interceptor.classes", EncryptingProducerInterceptor.class.getName());
    settings.put("consumer.interceptor.classes", DecryptingConsumerInterceptor.class.getName());
    settings.put("consumer.auto.offset.reset", "earliest");
    Real.cipherlane()
        .forEach(
            (name, value) -> {
              settings.put("producer." + name, value);
              settings.put("consumer." + name, value);
            });
    return settings;
  }

  private static Map<String, Object> withConverter(Map<String, Object> connector) {
    Map<String, Object> settings =
        KafkaClients.with(
            connector,
            "producer.override.interceptor.classes",
            "",
            "consumer.override.interceptor.classes",
            "",
            "value.converter",
            EncryptingConverter.class.getName(),
            "value.converter.cipherlane.value.converter",
            StringConverter.class.getName());
    Real.cipherlane().forEach((name, value) -> settings.put("value.converter." + name, value));
    return settings;
  }

  private Map<String, Object> source(String name, String topic, Path file) {
    return Map.of(
        "name", name,
        "connector.class", FileStreamSourceConnector.class.getName(),
        "tasks.max", "1",
        "topic", topic,
        "file", file);
  }

  private Map<String, Object> sink(String name, String topic, Path file) {
    return Map.of(
        "name", name,
        "connector.class", FileStreamSinkConnector.class.getName(),
        "tasks.max", "1",
        "topics", topic,
        "file", file);
  }

  @Test
  void filesComeOutAsTheyWentIn() throws Exception {
    List<String> lines = new ArrayList<>();
    for (int i = 0; i < LINES; i++) {
      lines.add("line " + i + " " + UUID.randomUUID());
    }
    Path input = Files.write(folder.resolve("input"), lines);
    Path first = folder.resolve("output-1");
    Path second = folder.resolve("output-2");
    try (Child worker =
        Child.start(
            folder,
            ConnectStandalone.class.getName(),
            Child.properties(folder.resolve("worker"), worker()),
            Child.properties(folder.resolve("s1"), source("source-1", byInterceptor, input)),
            Child.properties(folder.resolve("k1"), sink("sink-1", byInterceptor, first)),
            Child.properties(
                folder.resolve("s2"), withConverter(source("source-2", byConverter, input))),
            Child.properties(
                folder.resolve("k2"), withConverter(sink("sink-2", byConverter, second))))) {
      worker.await("output", () -> size(first) >= LINES && size(second) >= LINES);
    }
    assertThat(Files.readAllLines(first)).isEqualTo(lines);
    assertThat(Files.readAllLines(second)).isEqualTo(lines);
    Real.assertEnvelopes(byInterceptor, LINES);
    Real.assertEnvelopes(byConverter, LINES);
    Real.assertNotStored(lines);
  }

  private static int size(Path file) throws IOException {
    return Files.exists(file) ? Files.readAllLines(file).size() : 0;
  }
}
