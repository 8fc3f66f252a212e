package dev.cipherlane.keyservice;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keys.Term;
import dev.cipherlane.keys.Usage;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.UnaryOperator;

/**
 * The client of the key service: HTTP and JSON over mutual TLS, with several addresses tried in
 * turn. No proxy, no redirects, no cookies. Thread-safe.
 */
public final class KeyServiceClient implements KeySource {
  /** The largest share of the time until a renewal by which it comes early. */
  private static final double JITTER = 0.1;

  private final List<URI> addresses;
  private final RenewingHttp http;
  private final Duration requestTimeout;
  private final LeaseClock clock;

  // The address that answered last comes first, so that one that is down costs its timeout once.
  private volatile int preferred;

  /**
   * Makes a client; connects when it is asked something.
   *
   * @param addresses {@code https://host:port}, at least one
   * @param files certificates and key
   * @param connectTimeout for one address, TLS handshake included
   * @param requestTimeout for one request to one address, body included
   * @param clock what leases are measured on
   * @throws CipherlaneException {@code configuration-invalid} if an address is not https
   *     [CL-KEY-002] or a file cannot be used
   */
  public KeyServiceClient(
      List<URI> addresses,
      TlsFiles files,
      Duration connectTimeout,
      Duration requestTimeout,
      LeaseClock clock) {
    addresses.forEach(KeyServiceClient::check);
    this.addresses = List.copyOf(addresses);
    this.requestTimeout = requestTimeout;
    this.clock = clock;
    this.http = new RenewingHttp(files, connectTimeout, clock);
  }

  private static void check(URI address) {
    if (!"https".equals(address.getScheme()) || address.getHost() == null) {
      throw new CipherlaneException(
          ErrorCode.CONFIGURATION_INVALID, "the key service's address must be https://host:port");
    }
  }

  @Override
  public EncryptionAnswer encryptionKey(String topic, Optional<Usage> usage) {
    JsonObject request = new JsonObject();
    request.addProperty("topic", topic);
    usage.ifPresent(used -> request.add("usage", json(used)));
    return ask(
        "/v1/encryption-key",
        request,
        http -> Answers.encryptionKey(http).withTerms(jitter(http.sentAt())));
  }

  private static JsonObject json(Usage used) {
    JsonObject usage = new JsonObject();
    usage.addProperty("kid", used.kid().toString());
    usage.addProperty("records", used.records());
    usage.addProperty("bytes", used.bytes());
    return usage;
  }

  @Override
  public DecryptionAnswer decryptionKeys(String topic, List<KeyId> kids) {
    JsonArray names = new JsonArray();
    kids.forEach(kid -> names.add(kid.toString()));
    JsonObject request = new JsonObject();
    request.addProperty("topic", topic);
    request.add("kids", names);
    return ask(
        "/v1/decryption-keys",
        request,
        http -> Answers.decryptionKeys(http, kids).withTerms(jitter(http.sentAt())));
  }

  /** The same for all keys of an answer: what was asked for together is renewed together. */
  private static UnaryOperator<Term> jitter(long sentAt) {
    double share = ThreadLocalRandom.current().nextDouble(JITTER);
    return term -> term.renewedEarlier(sentAt, share);
  }

  /** Tries the addresses in turn, beginning with the one that answered last [CL-KEY-014]. */
  private <T> T ask(String path, JsonObject request, Function<HttpAnswer, T> read) {
    CipherlaneException last = null;
    int first = preferred;
    for (int i = 0; i < addresses.size(); i++) {
      int index = (first + i) % addresses.size();
      try {
        HttpAnswer answer = exchange(addresses.get(index).resolve(path), request);
        if (Refusals.passing(answer.status())) {
          last = Refusals.of(answer);
        } else {
          preferred = index;
          return readAndWipe(answer, read);
        }
      } catch (IOException e) {
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

  private HttpAnswer exchange(URI uri, JsonObject request) throws IOException {
    HttpRequest post =
        HttpRequest.newBuilder(uri)
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, application/problem+json")
            .POST(HttpRequest.BodyPublishers.ofString(request.toString()))
            .build();
    long sentAt = clock.now();
    HttpResponse<byte[]> response = get(http.get().sendAsync(post, info -> new BoundedBody()));
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

  /** Does nothing: connections end when idle, and with the client. */
  @Override
  public void close() {
    // HttpClient of Java 17 cannot be closed; its thread ends when it is collected.
  }
}
