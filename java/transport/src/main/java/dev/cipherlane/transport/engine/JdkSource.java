package dev.cipherlane.transport.engine;

import java.security.GeneralSecurityException;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;

/** The JDK's engines. Thread-safe. */
final class JdkSource implements TlsEngines.Source {
  /**
   * The JDK keeps one more for each connection, 20,480 by its default: some 20 MiB. One for each
   * broker is what connecting again needs.
   */
  static final int CLIENT_SESSIONS = 1024;

  private final SSLContext context;

  JdkSource(KeyManager keys, TrustManager trust) throws GeneralSecurityException {
    context = SSLContext.getInstance("TLS");
    context.init(new KeyManager[] {keys}, new TrustManager[] {trust}, null);
    context.getClientSessionContext().setSessionCacheSize(CLIENT_SESSIONS);
  }

  @Override
  public SSLEngine client(String peerHost, int peerPort) {
    return engine(peerHost, peerPort, true);
  }

  @Override
  public SSLEngine server(String peerHost, int peerPort) {
    return engine(peerHost, peerPort, false);
  }

  private SSLEngine engine(String peerHost, int peerPort, boolean client) {
    SSLEngine engine = context.createSSLEngine(peerHost, peerPort);
    engine.setUseClientMode(client);
    return engine;
  }

  @Override
  public void close() {}
}
