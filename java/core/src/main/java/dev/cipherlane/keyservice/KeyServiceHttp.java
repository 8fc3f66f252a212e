package dev.cipherlane.keyservice;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.identity.Credentials;
import dev.cipherlane.identity.Identity;
import dev.cipherlane.identity.TlsContexts;
import java.net.http.HttpClient;
import java.security.GeneralSecurityException;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;
import javax.net.ssl.SSLParameters;

/**
 * HTTP clients for the key service: mutual TLS that trusts the CAs given and nothing else
 * [CL-KEY-001], no proxy, no redirects, no cookies. {@link #get} makes one anew when the identity
 * has changed, or the last one was discarded. Thread-safe.
 */
final class KeyServiceHttp {
  /** A client and the credentials that it shows. */
  private record Made(Credentials credentials, HttpClient http) {}

  private final Identity identity;
  private final Duration connectTimeout;
  private volatile Made made;

  /**
   * Makes nothing yet.
   *
   * @param identity who asks
   * @param connectTimeout for one address, TLS handshake included
   */
  KeyServiceHttp(Identity identity, Duration connectTimeout) {
    this.identity = identity;
    this.connectTimeout = connectTimeout;
  }

  /**
   * Gives the client for the credentials of this time.
   *
   * @throws CipherlaneException {@code key-service-unavailable} if there are none
   */
  HttpClient get() {
    Credentials now = identity.credentials();
    Made last = made;
    return last != null && last.credentials() == now ? last.http() : renewed(now);
  }

  private synchronized HttpClient renewed(Credentials now) {
    if (made == null || made.credentials() != now) {
      Set<X509Certificate> trusted = now.trust().keyService();
      HttpClient http =
          client(Optional.of(now), trusted, connectTimeout, HttpClient.Version.HTTP_2);
      made = new Made(now, http);
    }
    return made.http();
  }

  /**
   * Never gives this client again. A connection of HTTP/2 stays in its pool after a request that
   * was not answered, and may be dead until the system gives it up, which takes a quarter of an
   * hour.
   */
  synchronized void discard(HttpClient broken) {
    if (made != null && made.http() == broken) {
      made = null;
    }
  }

  static HttpClient client(
      Optional<Credentials> own,
      Set<X509Certificate> trusted,
      Duration connectTimeout,
      HttpClient.Version version) {
    try {
      return HttpClient.newBuilder()
          .version(version)
          .sslContext(TlsContexts.context(own, trusted))
          .sslParameters(parameters())
          .connectTimeout(connectTimeout)
          .followRedirects(HttpClient.Redirect.NEVER)
          .proxy(HttpClient.Builder.NO_PROXY)
          .build();
    } catch (GeneralSecurityException e) {
      throw new CipherlaneException(
          ErrorCode.CONFIGURATION_INVALID, "this certificate cannot be used for TLS", e);
    }
  }

  /** Also says that the server's name is checked, which a system property could switch off. */
  private static SSLParameters parameters() {
    SSLParameters parameters = new SSLParameters();
    parameters.setProtocols(new String[] {"TLSv1.3", "TLSv1.2"});
    parameters.setEndpointIdentificationAlgorithm("HTTPS");
    return parameters;
  }
}
