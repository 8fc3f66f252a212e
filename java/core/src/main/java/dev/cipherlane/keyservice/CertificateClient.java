package dev.cipherlane.keyservice;

import com.google.gson.JsonObject;
import dev.cipherlane.CipherlaneException;
import dev.cipherlane.identity.CertificateSource;
import dev.cipherlane.identity.Proof;
import dev.cipherlane.keys.LeaseClock;
import java.net.URI;
import java.net.http.HttpClient;
import java.time.Duration;
import java.util.List;

/** Asks the key service for certificates. Thread-safe. */
public final class CertificateClient implements CertificateSource {
  private final Calls calls;
  private final Duration connectTimeout;

  /**
   * Makes one; connects when it is asked for a certificate.
   *
   * @param addresses {@code https://host:port}, at least one
   * @param connectTimeout for one address, TLS handshake included
   * @param requestTimeout for one request to one address, body included
   * @param clock what the life of certificates is measured on
   * @throws CipherlaneException {@code configuration-invalid} if an address is not https
   *     [CL-KEY-002]
   */
  public CertificateClient(
      List<URI> addresses, Duration connectTimeout, Duration requestTimeout, LeaseClock clock) {
    this.calls = new Calls(addresses, requestTimeout, clock);
    this.connectTimeout = connectTimeout;
  }

  @Override
  public Issued certificate(String csr, Proof proof) {
    JsonObject body = new JsonObject();
    body.addProperty("csr", csr);
    // Who is not known is told so and hung up on. Over HTTP/2 that is a GOAWAY before the answer,
    // with which Java loses it (JDK-8335181).
    HttpClient http =
        KeyServiceHttp.client(
            proof.certificate(), proof.trusted(), connectTimeout, HttpClient.Version.HTTP_1_1);
    return calls.ask(
        http,
        new Calls.Request("/v1/certificate", body, proof.token()),
        Answers::certificate,
        used -> {}); // each call has a client of its own
  }
}
