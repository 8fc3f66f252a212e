package dev.cipherlane.kafka;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.Configuration;
import dev.cipherlane.Counter;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.Numbers;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * What becomes of the {@link UndecryptableRecord}s of a batch, by {@code
 * cipherlane.failure.action}. Only those are touched of which the record itself is the cause; all
 * others stay, and their {@code value()} throws [CL-KAF-020]. Used by one thread.
 */
interface FailureHandler<K, V> extends AutoCloseable {
  /** Header with the code. */
  String ERROR = "cipherlane.error";

  /**
   * Does it.
   *
   * @param batch the records of each partition, in lists that are changed in place
   */
  void settle(Map<TopicPartition, List<ConsumerRecord<K, V>>> batch);

  @Override
  default void close() {
    // Most hold nothing.
  }

  /**
   * Finds the one that the settings ask for.
   *
   * @throws CipherlaneException {@code configuration-invalid}
   */
  static <K, V> FailureHandler<K, V> of(
      Configuration.Reading reading, Map<String, ?> settings, Numbers numbers) {
    return switch (reading.action()) {
      case FAIL -> batch -> {};
      case SKIP -> batch -> batch.values().forEach(records -> skip(records, numbers));
      case MARK -> batch -> batch.values().forEach(records -> mark(records, numbers));
      case DEAD_LETTER -> DeadLetters.open(reading.deadLetterTopic(), settings, numbers);
    };
  }

  /** Whether the record itself is why it cannot be decrypted. */
  static boolean unreadable(ConsumerRecord<?, ?> record) {
    return record instanceof UndecryptableRecord<?, ?> failed
        && failed.error().code().concernsRecord();
  }

  private static <K, V> void skip(List<ConsumerRecord<K, V>> records, Numbers numbers) {
    int before = records.size();
    records.removeIf(FailureHandler::unreadable);
    for (int i = records.size(); i < before; i++) {
      numbers.count(Counter.SKIPPED);
    }
  }

  /** Removes the header from every record first, so that only this client's own word counts. */
  private static <K, V> void mark(List<ConsumerRecord<K, V>> records, Numbers numbers) {
    records.forEach(record -> record.headers().remove(ERROR));
    records.replaceAll(record -> unreadable(record) ? marked(record, numbers) : record);
  }

  private static <K, V> ConsumerRecord<K, V> marked(ConsumerRecord<K, V> record, Numbers numbers) {
    UndecryptableRecord<K, V> failed = (UndecryptableRecord<K, V>) record;
    ErrorCode code = failed.error().code();
    if (code == ErrorCode.PLAINTEXT_REJECTED) {
      return failed; // Injected plaintext is not handed over [CL-KAF-025].
    }
    numbers.count(Counter.MARKED);
    ConsumerRecord<K, V> read = failed.asRead();
    read.headers().add(ERROR, code.code().getBytes(StandardCharsets.UTF_8));
    return read;
  }
}
