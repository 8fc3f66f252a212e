package dev.cipherlane.keyservice;

import com.google.gson.JsonObject;
import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.keys.LeaseClock;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.Function;

/** Calls of the key service, with several addresses tried in turn. Thread-safe. */
final class Calls {
  /** What is asked. A class and not a record, so that nothing prints a token. */
  static final class Request {
    private final String path;
    private final JsonObject body;
    private final Optional<String> token;

    Request(String path, JsonObject body, Optional<String> token) {
      this.path = path;
      this.body = body;
      this.token = token;
    }

    private String path() {
      return path;
    }

    private JsonObject body() {
      return body;
    }

    private Optional<String> token() {
      return token;
    }
  }

  private final List<URI> addresses;
  private final Duration requestTimeout;
  private final LeaseClock clock;

  // The address that answered last comes first, so that one that is down costs its timeout once.
  private volatile int preferred;

  /**
   * Checks the addresses.
   *
   * @throws CipherlaneException {@code configuration-invalid} if one is not https [CL-KEY-002]
   */
  Calls(List<URI> addresses, Duration requestTimeout, LeaseClock clock) {
    addresses.forEach(Calls::check);
    this.addresses = List.copyOf(addresses);
    this.requestTimeout = requestTimeout;
    this.clock = clock;
  }

  private static void check(URI address) {
    if (!"https".equals(address.getScheme()) || address.getHost() == null) {
      throw new CipherlaneException(
          ErrorCode.CONFIGURATION_INVALID, "the key service's address must be https://host:port");
    }
  }

  /**
   * Tries the addresses in turn, beginning with the one that answered last [CL-KEY-014].
   *
   * @param broken is told when an address did not answer over this client
   */
  <T> T ask(
      HttpClient http, Request request, Function<HttpAnswer, T> read, Consumer<HttpClient> broken) {
    CipherlaneException last = null;
    int first = preferred;
    for (int i = 0; i < addresses.size(); i++) {
      int index = (first + i) % addresses.size();
      try {
        HttpAnswer answer = exchange(http, addresses.get(index), request);
        if (Refusals.passing(answer.status())) {
          last = Refusals.of(answer);
        } else {
          preferred = index;
          return readAndWipe(answer, read);
        }
      } catch (IOException e) {
        broken.accept(http);
        last = unreachable(addresses.get(index), e);
      }
    }
    throw last;
  }

  private static <T> T readAndWipe(HttpAnswer answer, Function<HttpAnswer, T> read) {
    try {
      return read.apply(answer);
    } finally {
      answer.wipe();
    }
  }

  private static CipherlaneException unreachable(URI address, IOException cause) {
    return new CipherlaneException(
        ErrorCode.KEY_SERVICE_UNAVAILABLE, "no answer from " + address.getAuthority(), cause);
  }

  private HttpAnswer exchange(HttpClient http, URI address, Request request) throws IOException {
    HttpRequest.Builder post =
        HttpRequest.newBuilder(address.resolve(request.path()))
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, application/problem+json")
            .POST(HttpRequest.BodyPublishers.ofString(request.body().toString()));
    request.token().ifPresent(token -> post.header("Authorization", "Bearer " + token));
    long sentAt = clock.now();
    HttpResponse<byte[]> response = get(http.sendAsync(post.build(), info -> new BoundedBody()));
    String type = response.headers().firstValue("Content-Type").orElse("");
    return new HttpAnswer(response.statusCode(), type, response.body(), sentAt);
  }

  /** HttpClient's own timeout ends with the headers; this one covers the body. */
  private HttpResponse<byte[]> get(CompletableFuture<HttpResponse<byte[]>> response)
      throws IOException {
    try {
      return response.get(requestTimeout.toNanos(), TimeUnit.NANOSECONDS);
    } catch (ExecutionException e) {
      throw failure(e.getCause());
    } catch (TimeoutException e) {
      response.cancel(true);
      throw new IOException("no answer within cipherlane.keyservice.request.timeout.ms", e);
    } catch (InterruptedException e) {
      response.cancel(true);
      Thread.currentThread().interrupt();
      throw new CipherlaneException(ErrorCode.CLOSED, "stopped while asking the key service", e);
    }
  }

  private static IOException failure(Throwable cause) {
    if (cause instanceof BoundedBody.TooLong) {
      throw Fields.bad(cause.getMessage());
    }
    return cause instanceof IOException io ? io : new IOException(cause);
  }
}
