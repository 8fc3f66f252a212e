package dev.cipherlane.keyservice;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import dev.cipherlane.CipherlaneException;
import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.identity.Identity;
import dev.cipherlane.identity.PemIdentity;
import dev.cipherlane.identity.TlsFiles;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keys.Term;
import dev.cipherlane.keys.Usage;
import java.net.URI;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Function;
import java.util.function.UnaryOperator;

/**
 * The client of the key service: HTTP and JSON over mutual TLS, with several addresses tried in
 * turn. No proxy, no redirects, no cookies. Thread-safe.
 */
public final class KeyServiceClient implements KeySource {
  /** The largest share of the time until a renewal by which it comes early. */
  private static final double JITTER = 0.1;

  private final Calls calls;
  private final Identity identity;
  private final KeyServiceHttp http;

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
    this(addresses, new PemIdentity(files, clock), connectTimeout, requestTimeout, clock);
  }

  /**
   * Makes a client; connects when it is asked something.
   *
   * @param addresses {@code https://host:port}, at least one
   * @param identity who asks; closed with the client
   * @param connectTimeout for one address, TLS handshake included
   * @param requestTimeout for one request to one address, body included
   * @param clock what leases are measured on
   * @throws CipherlaneException {@code configuration-invalid} if an address is not https
   *     [CL-KEY-002]
   */
  public KeyServiceClient(
      List<URI> addresses,
      Identity identity,
      Duration connectTimeout,
      Duration requestTimeout,
      LeaseClock clock) {
    this.calls = new Calls(addresses, requestTimeout, clock);
    this.identity = identity;
    this.http = new KeyServiceHttp(identity, connectTimeout);
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

  private <T> T ask(String path, JsonObject request, Function<HttpAnswer, T> read) {
    var call = new Calls.Request(path, request, Optional.empty());
    return calls.ask(http.get(), call, read, http::discard);
  }

  /** Ends the identity. Connections end when idle, and with the client. */
  @Override
  public void close() {
    // HttpClient of Java 17 cannot be closed; its thread ends when it is collected.
    identity.close();
  }
}
