package dev.cipherlane.benchmarks;

import dev.cipherlane.benchmarks.BenchKafka.Row;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * One operation on records of one size.
 *
 * @param operation what is done
 * @param size bytes of a value
 * @param records how many of them a run takes
 */
record Case(Operation operation, int size, int records) {
  private static final int MAX_RECORDS = 2_000_000;
  private static final int RUN_BYTES = 400_000 * 1_024;
  private static final int ONE_SIZE = Integer.getInteger("size", 0);
  private static final String ONE_OPERATION = System.getProperty("operation", "");

  private static Stream<Case> all() {
    return Arrays.stream(Operation.values())
        .flatMap(operation -> sizes().mapToObj(size -> new Case(operation, size, records(size))));
  }

  /** Three, or any one: plaintext of 188 bytes shows what the envelope of 128 costs by its size. */
  private static IntStream sizes() {
    return ONE_SIZE == 0 ? IntStream.of(128, 1_024, 8_192) : IntStream.of(ONE_SIZE);
  }

  private static int records(int size) {
    return Math.min(MAX_RECORDS, RUN_BYTES / size);
  }

  /** The cases of a kind that the properties {@code size} and {@code operation} leave. */
  static List<Case> chosen(Predicate<Case> kind) {
    return all()
        .filter(kind)
        .filter(each -> ONE_OPERATION.isEmpty() || each.operation.label().equals(ONE_OPERATION))
        .toList();
  }

  /** All topics, as the broker's launcher takes them. */
  static String topics() {
    return all()
        .flatMap(each -> Arrays.stream(Row.values()).map(each::topic))
        .map(topic -> topic + ":1")
        .collect(Collectors.joining(","));
  }

  String name() {
    return operation.label() + "/" + size + "B";
  }

  String topic(Row row) {
    return "bench-" + operation.label() + "-" + size + "-" + row.label();
  }

  /** What {@link ClientMain} is told. */
  String command(Row row, Path configuration, Path payload) {
    return command(operation, row, configuration, payload);
  }

  /** What {@link ClientMain} is told so that there is something to consume. */
  String fillCommand(Row row, Path configuration, Path payload) {
    return command(Operation.PRODUCE, row, configuration, payload);
  }

  private String command(Operation done, Row row, Path configuration, Path payload) {
    String verb = done == Operation.CONSUME ? "consume" : "produce";
    return String.join(
        " ",
        verb,
        topic(row),
        String.valueOf(records),
        configuration.toString(),
        payload.toString());
  }
}
