package dev.cipherlane.transport.engine;

import java.security.GeneralSecurityException;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.X509ExtendedKeyManager;
import javax.net.ssl.X509ExtendedTrustManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes TLS engines that keep to what Kafka's {@code SslTransportLayer} expects of them
 * (kafka-clients 3.6 to 4.x), on the side of the client and of the broker.
 *
 * <p>Both managers are asked anew in each handshake, so they may answer with a renewed certificate
 * or other anchors; a session is resumed only within one {@code TlsEngines}. Thread-safe.
 */
public final class TlsEngines implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(TlsEngines.class);

  /** Makes engines of one kind, as yet without parameters. */
  interface Source {
    SSLEngine client(String peerHost, int peerPort);

    SSLEngine server(String peerHost, int peerPort);

    void close();
  }

  private final EngineKind kind;
  private final Source source;

  TlsEngines(EngineKind kind, Source source) {
    this.kind = kind;
    this.source = source;
  }

  /**
   * Makes the maker of engines for one identity. It never fails because a native library is
   * missing: such a kind is replaced by the JDK's, with a warning in the log if it was asked for by
   * name.
   *
   * @param keys gives this side's certificate and private key
   * @param trust decides about the peer's certificate
   * @param kind which engine
   * @return the maker
   * @throws GeneralSecurityException if the engine cannot be had, or refuses the managers
   */
  public static TlsEngines create(
      X509ExtendedKeyManager keys, X509ExtendedTrustManager trust, EngineKind kind)
      throws GeneralSecurityException {
    if (kind == EngineKind.JDK || kind == EngineKind.JDK_PLAIN) {
      return new TlsEngines(kind, new JdkSource(keys, trust));
    }
    try {
      if (BoringSsl.loads()) {
        return new TlsEngines(EngineKind.BORINGSSL, BoringSsl.source(keys, trust));
      }
    } catch (LinkageError e) { // Netty is missing, or is so old that it lacks what is called
      LOG.debug("without BoringSSL", e);
    }
    if (kind == EngineKind.BORINGSSL) {
      LOG.warn(
          "{}={} needs netty-handler and netty-tcnative-boringssl-static on the class path, for"
              + " this platform: going on with {}",
          EngineKind.SETTING,
          kind,
          EngineKind.JDK);
    }
    return new TlsEngines(EngineKind.JDK, new JdkSource(keys, trust));
  }

  /**
   * Tells which engine is used.
   *
   * @return never {@link EngineKind#AUTO}
   */
  public EngineKind kind() {
    return kind;
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
    return ready(source.client(peerHost, peerPort), parameters);
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
    return ready(source.server(peerHost, peerPort), parameters);
  }

  private SSLEngine ready(SSLEngine engine, SSLParameters parameters) {
    engine.setSSLParameters(parameters);
    return kind == EngineKind.JDK_PLAIN ? engine : new CoalescingEngine(engine);
  }

  /** Frees what is held outside the heap. Engines already made may still be used. */
  @Override
  public void close() {
    source.close();
  }
}
