package dev.cipherlane.kafka;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.Configuration;
import dev.cipherlane.Counter;
import dev.cipherlane.Numbers;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;

/**
 * The failure action {@code dead-letter}: ciphertext and reason go to another topic, and only once
 * that has them is the record left out [CL-KAF-022]. What that topic did not take is met as under
 * {@code fail}, and the error says both [CL-KAF-023].
 */
final class DeadLetters<K, V> implements FailureHandler<K, V> {
  private static final String TOPIC = ERROR + ".topic";
  private static final String PARTITION = ERROR + ".partition";
  private static final String OFFSET = ERROR + ".offset";
  private static final String KID = ERROR + ".kid";
  private static final List<String> NAMES = List.of(ERROR, TOPIC, PARTITION, OFFSET, KID);

  /** For all dead letters of one batch; well below the default of max.poll.interval.ms. */
  private static final Duration PATIENCE = Duration.ofSeconds(30);

  private final String topicTemplate;
  private final Producer<byte[], byte[]> producer;
  private final Numbers numbers;

  DeadLetters(String topicTemplate, Producer<byte[], byte[]> producer, Numbers numbers) {
    this.topicTemplate = topicTemplate;
    this.producer = producer;
    this.numbers = numbers;
  }

  /**
   * Makes one with a producer of its own.
   *
   * @throws CipherlaneException {@code configuration-invalid}
   */
  static <K, V> DeadLetters<K, V> open(
      String topicTemplate, Map<String, ?> consumerSettings, Numbers numbers) {
    return new DeadLetters<>(
        topicTemplate, new KafkaProducer<>(DeadLetterSettings.of(consumerSettings)), numbers);
  }

  @Override
  public void settle(Map<TopicPartition, List<ConsumerRecord<K, V>>> batch) {
    Map<ConsumerRecord<K, V>, Future<RecordMetadata>> sent = sendAll(batch);
    if (sent.isEmpty()) {
      return;
    }
    long end = System.nanoTime() + PATIENCE.toNanos();
    for (List<ConsumerRecord<K, V>> records : batch.values()) {
      records.replaceAll(record -> settled(record, sent.get(record), end));
      records.removeIf(Objects::isNull);
    }
  }

  private Map<ConsumerRecord<K, V>, Future<RecordMetadata>> sendAll(
      Map<TopicPartition, List<ConsumerRecord<K, V>>> batch) {
    Map<ConsumerRecord<K, V>, Future<RecordMetadata>> sent = new HashMap<>();
    Set<String> unreachable = new HashSet<>();
    for (List<ConsumerRecord<K, V>> records : batch.values()) {
      for (ConsumerRecord<K, V> record : records) {
        if (FailureHandler.unreadable(record)) {
          sent.put(record, send((UndecryptableRecord<K, V>) record, unreachable));
        }
      }
    }
    return sent;
  }

  /**
   * Hands it to the producer. A topic whose partitions could not be learnt is not asked again in
   * this batch: each time would take as long.
   */
  private Future<RecordMetadata> send(UndecryptableRecord<K, V> record, Set<String> unreachable) {
    String topic = topic(record);
    if (topic.equals(record.topic())) {
      return failed("it is the topic itself");
    }
    if (unreachable.contains(topic)) {
      return failed("it did not answer");
    }
    try {
      Future<RecordMetadata> sent = producer.send(letter(topic, record));
      if (sent.isDone() && failure(sent, System.nanoTime()) instanceof TimeoutException) {
        unreachable.add(topic);
      }
      return sent;
    } catch (RuntimeException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  private static Future<RecordMetadata> failed(String why) {
    return CompletableFuture.failedFuture(new IllegalStateException(why));
  }

  private String topic(ConsumerRecord<K, V> record) {
    return topicTemplate.replace(Configuration.TOPIC_MARK, record.topic());
  }

  private ProducerRecord<byte[], byte[]> letter(String topic, UndecryptableRecord<K, V> record) {
    ConsumerRecord<K, V> read = record.asRead();
    Long timestamp = read.timestamp() < 0 ? null : (Long) read.timestamp();
    return new ProducerRecord<>(
        topic,
        null,
        timestamp,
        bytes(read.key()),
        bytes(read.value()),
        headers(read, record.error()));
  }

  private static byte[] bytes(Object readAsBytes) {
    return (byte[]) readAsBytes;
  }

  private static Headers headers(ConsumerRecord<?, ?> read, RecordDecryptionException error) {
    Headers headers = new RecordHeaders(read.headers());
    NAMES.forEach(headers::remove);
    headers.add(ERROR, utf8(error.code().code()));
    headers.add(TOPIC, utf8(read.topic()));
    headers.add(PARTITION, utf8(Integer.toString(read.partition())));
    headers.add(OFFSET, utf8(Long.toString(read.offset())));
    error.kid().ifPresent(kid -> headers.add(KID, utf8(kid.toString())));
    return headers;
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** What the application gets in the record's place: null for what the dead-letter topic has. */
  private ConsumerRecord<K, V> settled(
      ConsumerRecord<K, V> record, Future<RecordMetadata> sent, long end) {
    if (sent == null) {
      return record;
    }
    Throwable failure = failure(sent, end);
    if (failure == null) {
      numbers.count(Counter.DEAD_LETTERED);
      return null;
    }
    return ((UndecryptableRecord<K, V>) record).withDeadLetterFailure(topic(record), failure);
  }

  /** Waits; gives why it was not taken, or null. */
  private static Throwable failure(Future<?> sent, long end) {
    try {
      sent.get(Math.max(0, end - System.nanoTime()), TimeUnit.NANOSECONDS);
      return null;
    } catch (ExecutionException e) {
      return e.getCause();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return e;
    } catch (java.util.concurrent.TimeoutException e) {
      return e;
    }
  }

  @Override
  public void close() {
    producer.close(PATIENCE);
  }
}
