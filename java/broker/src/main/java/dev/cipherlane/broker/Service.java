package dev.cipherlane.broker;

/** What the program runs: one broker, or a cluster. */
interface Service extends AutoCloseable {
  /** Returns once clients are answered and the topics of the options are there. */
  Ready start() throws Exception;

  /** Carries out a line of standard input; only a cluster knows any. */
  default void obey(String line) {}

  /** Returns if it ends by itself. */
  void awaitEnd() throws InterruptedException;

  /** Stops it, from any thread, started or not. */
  @Override
  void close();
}
