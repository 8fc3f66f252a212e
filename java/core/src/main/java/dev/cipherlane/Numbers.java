package dev.cipherlane;

import dev.cipherlane.keys.KeyNumbers;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.DoubleSupplier;

/**
 * What one encryptor or decryptor reports of itself ({@code spec/kafka.md}, "Numbers"): {@link
 * #figures} is all that a binding to some metrics library needs. Thread-safe, without a lock.
 */
public final class Numbers {
  /**
   * One figure.
   *
   * @param name as the specification has it
   * @param tags {@code code}, of failures; else none
   * @param description in a few words
   * @param value reads it, at any time and from any thread
   */
  public record Figure(
      String name, Map<String, String> tags, String description, DoubleSupplier value) {}

  private final Map<Counter, LongAdder> counters = new EnumMap<>(Counter.class);
  private final Map<ErrorCode, LongAdder> failures = new EnumMap<>(ErrorCode.class);
  private final KeyNumbers keys;
  private final AddedTime added = new AddedTime();

  Numbers(Set<Counter> counted, KeyNumbers keys) {
    this.keys = keys;
    counted.forEach(counter -> counters.put(counter, new LongAdder()));
    for (ErrorCode code : ErrorCode.values()) {
      failures.put(code, new LongAdder());
    }
  }

  AddedTime added() {
    return added;
  }

  LongAdder adder(Counter counter) {
    return counters.get(counter);
  }

  /**
   * Counts a record.
   *
   * @param counter as what; one that its encryptor or decryptor has
   */
  public void count(Counter counter) {
    counters.get(counter).increment();
  }

  /**
   * Counts a failure that came about outside of the encryptor or decryptor, which count their own.
   *
   * @param code what happened
   */
  public void failed(ErrorCode code) {
    failures.get(code).increment();
  }

  /**
   * Reads a counter.
   *
   * @param counter which
   * @return records so far
   */
  public long total(Counter counter) {
    return counters.containsKey(counter) ? counters.get(counter).sum() : 0;
  }

  /**
   * Reads the failures of one kind.
   *
   * @param code which
   * @return records that ended so
   */
  public long failures(ErrorCode code) {
    return failures.get(code).sum();
  }

  /**
   * Gives the figures of the keys, which all clients of one configuration share.
   *
   * @return the same one every time
   */
  public KeyNumbers keys() {
    return keys;
  }

  /**
   * Lists everything.
   *
   * @return the same figures every time
   */
  public List<Figure> figures() {
    List<Figure> figures = new ArrayList<>();
    counters.forEach(
        (counter, adder) ->
            figures.add(figure(counter.label(), counter.description(), adder::sum)));
    failures.forEach(
        (code, adder) ->
            figures.add(
                new Figure(
                    "failures-total",
                    Map.of("code", code.code()),
                    "records that ended in this error",
                    adder::sum)));
    figures.add(
        figure(
            "added-nanoseconds",
            "what encrypting or decrypting adds to a record, a mean of samples; NaN before the first",
            added::mean));
    figures.add(figure("key-requests-total", "calls to the key service", keys::requests));
    figures.add(
        figure("key-request-failures-total", "calls that ended in an error", keys::failures));
    figures.add(figure("keys-cached", "data keys held now", keys::cached));
    figures.add(
        figure(
            "lease-seconds-left",
            "seconds until the first lease ends; NaN while there is none",
            keys::leaseSecondsLeft));
    figures.add(
        figure(
            "certificate-seconds-left",
            "seconds until this client's certificate ends; NaN while there is none",
            keys::certificateSecondsLeft));
    return figures;
  }

  private static Figure figure(String name, String description, DoubleSupplier value) {
    return new Figure(name, Map.of(), description, value);
  }
}
