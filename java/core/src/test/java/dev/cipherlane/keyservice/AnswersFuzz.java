package dev.cipherlane.keyservice;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.Layer;
import java.util.List;

/**
 * For Jazzer, by {@code make fuzz}: whatever a key service answers, reading it ends in an answer or
 * in an error of the key service's layers.
 */
public final class AnswersFuzz {
  private AnswersFuzz() {}

  /** One answer, taken for each kind. */
  public static void fuzzerTestOneInput(byte[] body) {
    refusedOrRead(() -> Answers.encryptionKey(answer(200, "application/json", body)));
    refusedOrRead(() -> Answers.decryptionKeys(answer(200, "application/json", body), List.of()));
    refusedOrRead(() -> Answers.encryptionKey(answer(403, "application/problem+json", body)));
  }

  private static HttpAnswer answer(int status, String type, byte[] body) {
    return new HttpAnswer(status, type, body, 0);
  }

  private static void refusedOrRead(Runnable read) {
    try {
      read.run();
    } catch (CipherlaneException e) {
      if (e.code() == ErrorCode.INTERNAL || e.code().layer() == Layer.CONFIGURATION) {
        throw e;
      }
    }
  }
}
