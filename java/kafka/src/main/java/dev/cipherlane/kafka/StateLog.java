package dev.cipherlane.kafka;

import dev.cipherlane.ErrorCode;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Logs when records of a topic begin to fail and when they work again, and never each record: the
 * metrics count those. Thread-safe.
 */
final class StateLog {
  /** More are not remembered and not logged: a hostile producer must not fill memory or disks. */
  private static final int MAX_STATES = 1_000;

  /** A topic and an error. */
  private record State(String topic, ErrorCode code) {}

  private final Logger logger;
  private final String work;

  /** Errors of all records of a topic, which end. */
  private final Set<State> outages = ConcurrentHashMap.newKeySet();

  /** Errors of single records: each kind is told once for a topic. */
  private final Set<State> told = ConcurrentHashMap.newKeySet();

  private StateLog(Class<?> owner, String work) {
    this.logger = LoggerFactory.getLogger(owner);
    this.work = work;
  }

  static StateLog writing() {
    return new StateLog(EncryptingProducerInterceptor.class, "encrypts");
  }

  static StateLog reading() {
    return new StateLog(DecryptingConsumerInterceptor.class, "decrypts");
  }

  /**
   * To be called for every record that failed. Throws nothing, whatever the application's logger
   * does: Kafka would swallow it and send the record as it was.
   */
  void failed(String topic, ErrorCode code, String message) {
    Set<State> states = code.concernsRecord() ? told : outages;
    if (states.size() < MAX_STATES && states.add(new State(topic, code))) {
      try {
        logger.warn("{} (further ones of topic {} are only counted)", message, topic);
      } catch (RuntimeException e) {
        // The record is refused all the same.
      }
    }
  }

  /** To be called for every record that did not fail: costs next to nothing in good times. */
  void succeeded(String topic) {
    if (!outages.isEmpty() && outages.removeIf(state -> state.topic().equals(topic))) {
      logger.info("topic {} {} again", topic, work);
    }
  }
}
