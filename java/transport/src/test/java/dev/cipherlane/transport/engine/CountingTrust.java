package dev.cipherlane.transport.engine;

import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.X509ExtendedTrustManager;

/** Counts how often an engine has a peer's certificate verified. */
public final class CountingTrust extends EngineTrust {
  private final X509ExtendedTrustManager delegate;
  private final AtomicInteger checks = new AtomicInteger();

  /** Has another one decide. */
  public CountingTrust(X509ExtendedTrustManager delegate) {
    this.delegate = delegate;
  }

  /** How often so far. */
  public int checks() {
    return checks.get();
  }

  @Override
  public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine)
      throws CertificateException {
    checks.incrementAndGet();
    delegate.checkClientTrusted(chain, type, engine);
  }

  @Override
  public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine)
      throws CertificateException {
    checks.incrementAndGet();
    delegate.checkServerTrusted(chain, type, engine);
  }

  @Override
  public X509Certificate[] getAcceptedIssuers() {
    return delegate.getAcceptedIssuers();
  }
}
