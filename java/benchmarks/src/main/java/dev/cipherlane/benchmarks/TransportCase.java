package dev.cipherlane.benchmarks;

import java.util.List;
import java.util.OptionalInt;
import java.util.stream.Stream;

/**
 * What clients do in a run.
 *
 * @param operation {@code produce} or {@code consume}
 * @param size bytes of a value
 * @param connections that carry records at the same time
 * @param acks {@code 1}, or {@code all} with three brokers
 */
record TransportCase(String operation, int size, int connections, String acks) {
  private static final List<String> OPERATIONS = List.of("produce", "consume");
  private static final List<Integer> ALL_SIZES = List.of(128, 512, 1_024, 10_240, 512_000);
  private static final List<Integer> MAIN_SIZES = List.of(128, 1_024, 10_240);
  private static final List<Integer> CONNECTIONS = List.of(1, 64, 512);
  private static final String ALL = "all";

  // So many that a run takes some seconds: a record takes as long as this many bytes more.
  private static final int RUN_BYTES =
      atMost(500_000_000, Integer.getInteger("bytes", 400_000_000));
  private static final int RECORD_BYTES = 256;
  private static final int COPIES = 3;

  private static final int DEFAULT_BATCH = 16_384;
  private static final int LARGE_BATCH = 131_072;
  private static final int SEVERAL = 12;

  /** Brokers keep 512 MiB of a topic: what is gone a consumer would wait for. */
  private static int atMost(int most, int bytes) {
    if (bytes > most) {
      throw new IllegalArgumentException("BYTES is " + bytes + ": at most " + most);
    }
    return bytes;
  }

  /** Those that the caller leaves: of one operation, over so many connections. */
  static List<TransportCase> chosen(String operation, int connections, String acks) {
    return sizes(connections, acks)
        .map(s -> new TransportCase(operation, s, connections, acks))
        .toList();
  }

  static List<String> chosenOperations(String acks) {
    // What is read is the same whatever the producer waited for.
    return (acks.equals(ALL) ? List.of("produce") : OPERATIONS)
        .stream().filter(each -> Choice.leaves("operation", each)).toList();
  }

  static List<Integer> chosenConnections(String acks) {
    if (!Choice.made("connections")) {
      return acks.equals(ALL) ? List.of(1) : CONNECTIONS;
    }
    return Choice.values("connections").stream().map(Integer::valueOf).toList();
  }

  static List<String> chosenAcks() {
    return Stream.of("1", ALL).filter(each -> Choice.leaves("acks", each)).toList();
  }

  /** With connections named, any sizes may be; otherwise those that are measured anyway. */
  private static Stream<Integer> sizes(int connections, String acks) {
    if (Choice.made("connections") && Choice.made("size")) {
      return Choice.values("size").stream().map(Integer::valueOf);
    }
    List<Integer> sizes = connections == 1 && !acks.equals(ALL) ? ALL_SIZES : MAIN_SIZES;
    return sizes.stream().filter(size -> Choice.leaves("size", size));
  }

  String name() {
    String name = operation + "/" + size + "B/" + connections + "conn";
    return onThree() ? name + "/acks-all" : name;
  }

  String topic() {
    return "transport-" + operation + "-" + size + "-" + connections;
  }

  /**
   * For producers, where it is not Kafka's default of 16 KiB: over one connection so much that a
   * batch of larger records holds several too. With one record in each, what is measured is how a
   * request wakes threads, in which TLS is lost.
   */
  OptionalInt batchSize() {
    boolean few = size > DEFAULT_BATCH / SEVERAL && size < LARGE_BATCH;
    return connections == 1 && few ? OptionalInt.of(LARGE_BATCH) : OptionalInt.empty();
  }

  /** Whether three brokers store each record before it counts. */
  boolean onThree() {
    return acks.equals(ALL);
  }

  boolean consumes() {
    return operation.equals("consume");
  }

  /** Of a run, the same for each connection. */
  int records() {
    int records = RUN_BYTES / (size + RECORD_BYTES) / (onThree() ? COPIES : 1);
    return Math.max(1, records / connections) * connections;
  }

  /** Stored for consumers: each connection reads them all. */
  int stored() {
    return records() / connections;
  }
}
