package dev.cipherlane.transport;

import dev.cipherlane.transport.engine.FrameTracker;
import java.nio.ByteBuffer;
import java.security.cert.X509Certificate;
import java.util.function.BiFunction;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLEngineResult.Status;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLPeerUnverifiedException;
import javax.net.ssl.SSLSession;

/**
 * An engine whose connection ends with its certificates: then it answers {@code CLOSED} to whatever
 * is to be sent or read, which Kafka takes as the peer having hung up, and connects again. It
 * carries no more bytes either, so an idle connection is as good as closed before Kafka looks at
 * it. Used by one thread at a time, as every engine.
 */
final class EndingEngine extends SSLEngine {
  private final SSLEngine engine;
  private final ConnectionEnd end;
  private final FrameTracker sent = new FrameTracker();
  private final FrameTracker received = new FrameTracker();
  private boolean shaken;
  private boolean ended;

  EndingEngine(SSLEngine engine, ConnectionEnd end) {
    super(engine.getPeerHost(), engine.getPeerPort());
    this.engine = engine;
    this.end = end;
  }

  /** Looked at before anything is carried, so that what is refused was not begun. */
  private boolean over() {
    if (!shaken) {
      return false;
    }
    ended = ended || end.now(sent, received);
    return ended;
  }

  private static SSLEngineResult closed() {
    return new SSLEngineResult(Status.CLOSED, HandshakeStatus.NOT_HANDSHAKING, 0, 0);
  }

  private SSLEngineResult noted(SSLEngineResult result) throws SSLPeerUnverifiedException {
    if (!shaken
        && (result.getHandshakeStatus() == HandshakeStatus.FINISHED
            || result.getHandshakeStatus() == HandshakeStatus.NOT_HANDSHAKING)
        && result.getStatus() == Status.OK) {
      shaken = true;
      end.peer((X509Certificate) engine.getSession().getPeerCertificates()[0]);
    }
    return result;
  }

  @Override
  public SSLEngineResult wrap(ByteBuffer source, ByteBuffer target) throws SSLException {
    if (source.hasRemaining() && over()) {
      return closed();
    }
    int from = source.position();
    SSLEngineResult result = noted(engine.wrap(source, target));
    sent.passed(source, from, source.position());
    return result;
  }

  @Override
  public SSLEngineResult unwrap(ByteBuffer source, ByteBuffer target) throws SSLException {
    if (over()) {
      return closed();
    }
    int from = target.position();
    SSLEngineResult result = noted(engine.unwrap(source, target));
    received.passed(target, from, target.position());
    return result;
  }

  /** Kafka uses one buffer at a time. */
  @Override
  public SSLEngineResult wrap(ByteBuffer[] sources, int offset, int length, ByteBuffer target)
      throws SSLException {
    if (length != 1) {
      throw new UnsupportedOperationException("one buffer at a time");
    }
    return wrap(sources[offset], target);
  }

  /** Kafka uses one buffer at a time. */
  @Override
  public SSLEngineResult unwrap(ByteBuffer source, ByteBuffer[] targets, int offset, int length)
      throws SSLException {
    if (length != 1) {
      throw new UnsupportedOperationException("one buffer at a time");
    }
    return unwrap(source, targets[offset]);
  }

  @Override
  public Runnable getDelegatedTask() {
    return engine.getDelegatedTask();
  }

  @Override
  public void closeInbound() throws SSLException {
    engine.closeInbound();
  }

  @Override
  public boolean isInboundDone() {
    return engine.isInboundDone();
  }

  @Override
  public void closeOutbound() {
    engine.closeOutbound();
  }

  @Override
  public boolean isOutboundDone() {
    return engine.isOutboundDone();
  }

  @Override
  public String[] getSupportedCipherSuites() {
    return engine.getSupportedCipherSuites();
  }

  @Override
  public String[] getEnabledCipherSuites() {
    return engine.getEnabledCipherSuites();
  }

  @Override
  public void setEnabledCipherSuites(String[] suites) {
    engine.setEnabledCipherSuites(suites);
  }

  @Override
  public String[] getSupportedProtocols() {
    return engine.getSupportedProtocols();
  }

  @Override
  public String[] getEnabledProtocols() {
    return engine.getEnabledProtocols();
  }

  @Override
  public void setEnabledProtocols(String[] protocols) {
    engine.setEnabledProtocols(protocols);
  }

  @Override
  public SSLSession getSession() {
    return engine.getSession();
  }

  @Override
  public SSLSession getHandshakeSession() {
    return engine.getHandshakeSession();
  }

  @Override
  public void beginHandshake() throws SSLException {
    engine.beginHandshake();
  }

  @Override
  public HandshakeStatus getHandshakeStatus() {
    return engine.getHandshakeStatus();
  }

  @Override
  public void setUseClientMode(boolean mode) {
    engine.setUseClientMode(mode);
  }

  @Override
  public boolean getUseClientMode() {
    return engine.getUseClientMode();
  }

  @Override
  public void setNeedClientAuth(boolean need) {
    engine.setNeedClientAuth(need);
  }

  @Override
  public boolean getNeedClientAuth() {
    return engine.getNeedClientAuth();
  }

  @Override
  public void setWantClientAuth(boolean want) {
    engine.setWantClientAuth(want);
  }

  @Override
  public boolean getWantClientAuth() {
    return engine.getWantClientAuth();
  }

  @Override
  public void setEnableSessionCreation(boolean flag) {
    engine.setEnableSessionCreation(flag);
  }

  @Override
  public boolean getEnableSessionCreation() {
    return engine.getEnableSessionCreation();
  }

  @Override
  public SSLParameters getSSLParameters() {
    return engine.getSSLParameters();
  }

  @Override
  public void setSSLParameters(SSLParameters parameters) {
    engine.setSSLParameters(parameters);
  }

  @Override
  public String getApplicationProtocol() {
    return engine.getApplicationProtocol();
  }

  @Override
  public String getHandshakeApplicationProtocol() {
    return engine.getHandshakeApplicationProtocol();
  }

  @Override
  public void setHandshakeApplicationProtocolSelector(
      BiFunction<SSLEngine, java.util.List<String>, String> selector) {
    engine.setHandshakeApplicationProtocolSelector(selector);
  }

  @Override
  public BiFunction<SSLEngine, java.util.List<String>, String>
      getHandshakeApplicationProtocolSelector() {
    return engine.getHandshakeApplicationProtocolSelector();
  }
}
