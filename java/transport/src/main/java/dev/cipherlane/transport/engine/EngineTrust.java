package dev.cipherlane.transport.engine;

import java.net.Socket;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import javax.net.ssl.X509ExtendedTrustManager;

/** Decides for engines only: whoever asks without one, who cannot say what to check, is refused. */
public abstract class EngineTrust extends X509ExtendedTrustManager {
  @Override
  public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket)
      throws CertificateException {
    throw forEnginesOnly();
  }

  @Override
  public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket)
      throws CertificateException {
    throw forEnginesOnly();
  }

  @Override
  public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
    throw forEnginesOnly();
  }

  @Override
  public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
    throw forEnginesOnly();
  }

  private static CertificateException forEnginesOnly() {
    return new CertificateException("for engines only");
  }
}
