package dev.cipherlane.transport.engine;

import dev.cipherlane.keyservice.TestCertificates;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.util.Arrays;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedKeyManager;
import javax.net.ssl.X509ExtendedTrustManager;

/** One side's certificate and key, and the authority that it trusts; made anew for each test. */
final class Keys {
  static final String PASSWORD = "changeit";

  private final KeyStore store;

  private Keys(KeyStore store) {
    this.store = store;
  }

  static Keys of(TestCertificates authority, TestCertificates.Identity identity) {
    try {
      KeyStore store = KeyStore.getInstance("PKCS12");
      store.load(null, null);
      store.setCertificateEntry("ca", authority.authority());
      store.setKeyEntry(
          "own",
          identity.keys().getPrivate(),
          PASSWORD.toCharArray(),
          new Certificate[] {identity.certificate(), authority.authority()});
      return new Keys(store);
    } catch (GeneralSecurityException | IOException e) {
      throw new IllegalStateException(e);
    }
  }

  static Keys load(Path file) throws IOException, GeneralSecurityException {
    KeyStore store = KeyStore.getInstance("PKCS12");
    try (InputStream in = Files.newInputStream(file)) {
      store.load(in, PASSWORD.toCharArray());
    }
    return new Keys(store);
  }

  Path write(Path file) throws IOException, GeneralSecurityException {
    try (OutputStream out = Files.newOutputStream(file)) {
      store.store(out, PASSWORD.toCharArray());
    }
    return file;
  }

  TlsEngines engines(EngineKind kind) {
    try {
      return TlsEngines.create(keyManager(), trustManager(), kind);
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException(e);
    }
  }

  X509ExtendedKeyManager keyManager() throws GeneralSecurityException {
    // Kafka's choice too: the JDK's other one decrypts the store's key in each handshake.
    KeyManagerFactory factory = KeyManagerFactory.getInstance("SunX509");
    factory.init(store, PASSWORD.toCharArray());
    return only(X509ExtendedKeyManager.class, factory.getKeyManagers());
  }

  X509ExtendedTrustManager trustManager() throws GeneralSecurityException {
    TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
    factory.init(store);
    return only(X509ExtendedTrustManager.class, factory.getTrustManagers());
  }

  private static <T> T only(Class<T> type, Object[] managers) {
    return Arrays.stream(managers).filter(type::isInstance).map(type::cast).findFirst().get();
  }
}
