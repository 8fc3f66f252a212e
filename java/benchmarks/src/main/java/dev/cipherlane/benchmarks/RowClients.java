package dev.cipherlane.benchmarks;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** A Java machine of clients for each row: what one did has not shaped the code of the other. */
final class RowClients<R> implements AutoCloseable {
  private static final String HEAP = "1g";

  private final Map<R, ClientProcess> processes = new LinkedHashMap<>();

  /**
   * Starts all.
   *
   * @param brokers the processes that work for a row's clients
   */
  RowClients(List<R> rows, Function<R, List<Long>> brokers) throws IOException {
    try {
      for (R row : rows) {
        processes.put(row, ClientProcess.start(brokers.apply(row), HEAP));
      }
    } catch (IOException e) {
      close();
      throw e;
    }
  }

  ClientProcess of(R row) {
    return processes.get(row);
  }

  @Override
  public void close() throws IOException {
    for (ClientProcess process : processes.values()) {
      process.close();
    }
  }
}
