package dev.cipherlane.kafka;

import java.nio.charset.StandardCharsets;

/**
 * What the interceptor of a String producer leaves for the partitioner, which Kafka calls on the
 * same thread within the same {@code send()}. See {@code spec/decisions/0005}.
 */
final class Handover {
  private static final ThreadLocal<Handover> LAST = new ThreadLocal<>();

  private final String topic;
  private final String placeholder;
  private final byte[] bytes;

  private Handover(String topic, String placeholder, byte[] bytes) {
    this.topic = topic;
    this.placeholder = placeholder;
    this.bytes = bytes;
  }

  /**
   * Leaves bytes in the place of what was left before.
   *
   * @return a new String, which becomes as many bytes of UTF-8, all of them zero
   */
  static String leave(String topic, byte[] bytes) {
    String placeholder = new String(new byte[bytes.length], StandardCharsets.ISO_8859_1);
    LAST.set(new Handover(topic, placeholder, bytes));
    return placeholder;
  }

  /**
   * Writes what was left over the placeholder's bytes. May be done twice for one record:
   * kafka-clients 3 asks for a partition again when a batch is full.
   *
   * @return whether it was left for just this record
   */
  @SuppressWarnings("ReferenceEquality") // An equal String is another record's.
  static boolean take(String topic, Object value, byte[] serialized) {
    Handover last = LAST.get();
    if (last == null
        || last.placeholder != value
        || !last.topic.equals(topic)
        || last.bytes.length != serialized.length) {
      return false;
    }
    System.arraycopy(last.bytes, 0, serialized, 0, serialized.length);
    return true;
  }
}
