package dev.cipherlane.keyservice;

import java.util.Arrays;
import java.util.Locale;

/**
 * An answer as HTTP has it, its body whole. A class and not a record, so that nothing prints the
 * body.
 */
final class HttpAnswer {
  private final int status;
  private final String contentType;
  private final byte[] body;
  private final long sentAt;

  /**
   * Makes one.
   *
   * @param status of HTTP
   * @param contentType the header, empty if there is none
   * @param body at most 1 MiB
   * @param sentAt when the request was sent, in nanoseconds of the lease clock
   */
  HttpAnswer(int status, String contentType, byte[] body, long sentAt) {
    this.status = status;
    this.contentType = contentType;
    this.body = body;
    this.sentAt = sentAt;
  }

  int status() {
    return status;
  }

  /** Without parameters such as charset, in lowercase. */
  String mediaType() {
    return contentType.split(";", 2)[0].strip().toLowerCase(Locale.ROOT);
  }

  byte[] body() {
    return body;
  }

  long sentAt() {
    return sentAt;
  }

  void wipe() {
    Arrays.fill(body, (byte) 0);
  }
}
