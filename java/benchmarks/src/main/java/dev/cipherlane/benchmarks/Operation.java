package dev.cipherlane.benchmarks;

import java.util.Locale;

/** What a run does, and with which settings besides Kafka's defaults and {@code acks=1}. */
enum Operation {
  /** Kafka's defaults. */
  PRODUCE(""),
  /** What is usual where throughput matters: fewer, larger batches. */
  PRODUCE_BATCH128K("batch.size=131072"),
  /** Kafka's defaults. */
  CONSUME("");

  private final String settings;

  Operation(String settings) {
    this.settings = settings;
  }

  String label() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** As {@code a=b,c=d}; may be empty. */
  String settings() {
    return settings;
  }
}
