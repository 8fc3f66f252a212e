package dev.cipherlane.transport.engine;

import java.security.Principal;
import java.security.cert.Certificate;
import java.util.function.IntSupplier;
import java.util.function.Supplier;
import javax.net.ssl.SSLPeerUnverifiedException;
import javax.net.ssl.SSLSession;
import javax.net.ssl.SSLSessionContext;

/** The engine's current session, but for the buffer sizes, which Kafka asks for again and again. */
final class SizedSession implements SSLSession {
  private final Supplier<SSLSession> current;
  private final IntSupplier packetSize;
  private final IntSupplier applicationSize;

  SizedSession(Supplier<SSLSession> current, IntSupplier packetSize, IntSupplier applicationSize) {
    this.current = current;
    this.packetSize = packetSize;
    this.applicationSize = applicationSize;
  }

  @Override
  public int getPacketBufferSize() {
    return packetSize.getAsInt();
  }

  @Override
  public int getApplicationBufferSize() {
    return applicationSize.getAsInt();
  }

  @Override
  public byte[] getId() {
    return current.get().getId();
  }

  @Override
  public SSLSessionContext getSessionContext() {
    return current.get().getSessionContext();
  }

  @Override
  public long getCreationTime() {
    return current.get().getCreationTime();
  }

  @Override
  public long getLastAccessedTime() {
    return current.get().getLastAccessedTime();
  }

  @Override
  public void invalidate() {
    current.get().invalidate();
  }

  @Override
  public boolean isValid() {
    return current.get().isValid();
  }

  @Override
  public void putValue(String name, Object value) {
    current.get().putValue(name, value);
  }

  @Override
  public Object getValue(String name) {
    return current.get().getValue(name);
  }

  @Override
  public void removeValue(String name) {
    current.get().removeValue(name);
  }

  @Override
  public String[] getValueNames() {
    return current.get().getValueNames();
  }

  @Override
  public Certificate[] getPeerCertificates() throws SSLPeerUnverifiedException {
    return current.get().getPeerCertificates();
  }

  @Override
  public Certificate[] getLocalCertificates() {
    return current.get().getLocalCertificates();
  }

  @Override
  public Principal getPeerPrincipal() throws SSLPeerUnverifiedException {
    return current.get().getPeerPrincipal();
  }

  @Override
  public Principal getLocalPrincipal() {
    return current.get().getLocalPrincipal();
  }

  @Override
  public String getCipherSuite() {
    return current.get().getCipherSuite();
  }

  @Override
  public String getProtocol() {
    return current.get().getProtocol();
  }

  @Override
  public String getPeerHost() {
    return current.get().getPeerHost();
  }

  @Override
  public int getPeerPort() {
    return current.get().getPeerPort();
  }
}
