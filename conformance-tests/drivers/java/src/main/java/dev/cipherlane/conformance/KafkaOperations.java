// Producing and consuming, by interceptors, as an application's configuration asks for.
package dev.cipherlane.conformance;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import dev.cipherlane.kafka.DecryptingConsumerInterceptor;
import dev.cipherlane.kafka.EncryptingProducerInterceptor;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

final class KafkaOperations {
  static final Set<String> PRODUCER_ONLY =
      Set.of("acks", "compression.type", "transactional.id", "max.request.size");
  private static final Duration POLL = Duration.ofMillis(200);

  private KafkaOperations() {}

  static JsonObject produce(JsonObject request) {
    Map<String, Object> settings = settings(request, Set.of("isolation.level"));
    settings.put("interceptor.classes", EncryptingProducerInterceptor.class.getName());
    String transaction = request.has("transaction") ? request.get("transaction").getAsString() : "";
    try (var producer =
        new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
      if (!transaction.isEmpty()) {
        producer.initTransactions();
        producer.beginTransaction();
      }
      JsonArray results = sendAll(producer, request);
      if (transaction.equals("commit")) {
        producer.commitTransaction();
      } else if (transaction.equals("abort")) {
        producer.abortTransaction();
      }
      return wrap("results", results);
    }
  }

  private static JsonArray sendAll(KafkaProducer<byte[], byte[]> producer, JsonObject request) {
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    for (JsonElement record : request.getAsJsonArray("records")) {
      sent.add(
          send(producer, record(request.get("topic").getAsString(), record.getAsJsonObject())));
    }
    producer.flush();
    JsonArray results = new JsonArray();
    sent.forEach(outcome -> results.add(result(outcome)));
    return results;
  }

  static JsonObject load(JsonObject request) throws InterruptedException {
    Map<String, Object> settings = settings(request, Set.of("isolation.level"));
    settings.put("interceptor.classes", EncryptingProducerInterceptor.class.getName());
    String topic = request.get("topic").getAsString();
    byte[] prefix = Driver.bytes(request.get("value"));
    Path goesOn = Path.of(request.get("while").getAsString());
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    List<Long> tried = new ArrayList<>();
    try (var producer =
        new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
      long begun = System.nanoTime();
      long end = begun + Duration.ofMillis(request.get("timeout_ms").getAsLong()).toNanos();
      while (System.nanoTime() < end && Files.exists(goesOn)) {
        byte[] value =
            ByteBuffer.allocate(prefix.length + Long.BYTES)
                .put(prefix)
                .putLong(sent.size())
                .array();
        tried.add(Duration.ofNanos(System.nanoTime() - begun).toMillis());
        sent.add(send(producer, new ProducerRecord<>(topic, 0, null, value)));
        Thread.sleep(1_000 / request.get("rate").getAsLong());
      }
    }
    JsonArray results = new JsonArray();
    for (int i = 0; i < sent.size(); i++) {
      JsonObject result = result(sent.get(i));
      result.addProperty("ms", tried.get(i));
      results.add(result);
    }
    return wrap("results", results);
  }

  /** What becomes of a record; a refusal of send() itself is no different. */
  private static Future<RecordMetadata> send(
      KafkaProducer<byte[], byte[]> producer, ProducerRecord<byte[], byte[]> record) {
    try {
      return producer.send(record);
    } catch (RuntimeException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  private static JsonObject result(Future<RecordMetadata> outcome) {
    JsonObject result = new JsonObject();
    try {
      result.addProperty("offset", outcome.get().offset());
    } catch (ExecutionException | InterruptedException | RuntimeException e) {
      result.add("error", DriverException.describe(e));
    }
    return result;
  }

  private static ProducerRecord<byte[], byte[]> record(String topic, JsonObject record) {
    var made =
        new ProducerRecord<>(
            topic,
            record.get("partition").getAsInt(),
            Driver.bytes(record.get("key")),
            Driver.bytes(record.get("value")));
    if (record.has("headers")) {
      for (JsonElement header : record.getAsJsonArray("headers")) {
        JsonArray pair = header.getAsJsonArray();
        made.headers().add(pair.get(0).getAsString(), Driver.bytes(pair.get(1)));
      }
    }
    return made;
  }

  static JsonObject consume(JsonObject request) {
    Map<String, Object> settings = settings(request, PRODUCER_ONLY);
    settings.put("interceptor.classes", DecryptingConsumerInterceptor.class.getName());
    settings.put("enable.auto.commit", false);
    String topic = request.get("topic").getAsString();
    try (var consumer =
        new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
      List<TopicPartition> partitions = new ArrayList<>();
      consumer
          .partitionsFor(topic)
          .forEach(p -> partitions.add(new TopicPartition(topic, p.partition())));
      consumer.assign(partitions);
      consumer.seekToBeginning(partitions);
      return wrap("records", read(consumer, request));
    }
  }

  private static JsonArray read(KafkaConsumer<byte[], byte[]> consumer, JsonObject request) {
    JsonArray records = new JsonArray();
    long patience = Duration.ofMillis(request.get("timeout_ms").getAsLong()).toNanos();
    long begun = System.nanoTime();
    while (records.size() < request.get("count").getAsInt()
        && System.nanoTime() - begun < patience) {
      for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
        records.add(describe(record));
      }
    }
    return records;
  }

  private static JsonObject describe(ConsumerRecord<byte[], byte[]> record) {
    JsonObject described = new JsonObject();
    described.addProperty("partition", record.partition());
    described.addProperty("offset", record.offset());
    described.add("key", Driver.hex(record.key()));
    JsonArray headers = new JsonArray();
    for (Header header : record.headers()) {
      JsonArray pair = new JsonArray();
      pair.add(header.key());
      pair.add(Driver.hex(header.value()));
      headers.add(pair);
    }
    described.add("headers", headers);
    try {
      described.add("value", Driver.hex(record.value()));
    } catch (RuntimeException e) {
      described.add("error", DriverException.describe(e));
    }
    return described;
  }

  private static JsonObject wrap(String name, JsonArray content) {
    JsonObject ok = new JsonObject();
    ok.add(name, content);
    return ok;
  }

  static Map<String, Object> settings(JsonObject request, Set<String> without) {
    Map<String, Object> settings = new HashMap<>();
    request
        .getAsJsonObject("settings")
        .asMap()
        .forEach((name, value) -> settings.put(name, value.getAsString()));
    settings.keySet().removeAll(without);
    return settings;
  }
}
