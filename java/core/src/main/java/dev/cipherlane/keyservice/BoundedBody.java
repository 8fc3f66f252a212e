package dev.cipherlane.keyservice;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;

/** Takes a body of at most 1 MiB into memory, and hangs up on a longer one. */
final class BoundedBody implements HttpResponse.BodySubscriber<byte[]> {
  /** Bytes of the longest answer ({@code spec/limits.md}). */
  static final int MAX = 1024 * 1024;

  /** That the answer is too long: not a failure of the network, so no other address is tried. */
  static final class TooLong extends IOException {
    private static final long serialVersionUID = 1L;

    TooLong() {
      super("the answer is longer than " + MAX + " bytes");
    }
  }

  /** A buffer that can be wiped. */
  private static final class Buffer extends ByteArrayOutputStream {
    void wipe() {
      Arrays.fill(buf, (byte) 0);
    }
  }

  private final CompletableFuture<byte[]> body = new CompletableFuture<>();
  private final Buffer buffer = new Buffer();
  private Flow.Subscription subscription;

  @Override
  public CompletionStage<byte[]> getBody() {
    return body;
  }

  @Override
  public void onSubscribe(Flow.Subscription given) {
    subscription = given;
    given.request(Long.MAX_VALUE);
  }

  @Override
  public void onNext(List<ByteBuffer> parts) {
    for (ByteBuffer part : parts) {
      if (part.remaining() > MAX - buffer.size()) {
        subscription.cancel();
        onError(new TooLong());
        return;
      }
      byte[] bytes = new byte[part.remaining()];
      part.get(bytes);
      buffer.writeBytes(bytes);
      Arrays.fill(bytes, (byte) 0);
    }
  }

  @Override
  public void onError(Throwable error) {
    body.completeExceptionally(error);
    buffer.wipe();
  }

  @Override
  public void onComplete() {
    body.complete(buffer.toByteArray());
    buffer.wipe();
  }
}
