package dev.cipherlane.benchmarks;

/** What is measured beside others: a row of the report. */
interface Labelled {
  /** The row's name in the report. */
  String label();
}
