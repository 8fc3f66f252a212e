package dev.cipherlane.identity;

import java.io.IOException;
import java.net.Socket;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.Principal;
import java.security.PrivateKey;
import java.security.cert.X509Certificate;
import java.util.Arrays;
import java.util.Collection;
import java.util.Optional;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedKeyManager;
import javax.net.ssl.X509ExtendedTrustManager;

/** What Java's TLS needs of credentials: nothing but memory is involved. */
public final class TlsContexts {
  private static final String ALIAS = "identity";

  private TlsContexts() {}

  /**
   * Makes a context for calls to the key service.
   *
   * @param own shown to it; empty for none
   * @param trusted CAs that its certificate must chain to
   * @return a new context
   * @throws GeneralSecurityException if the runtime has no TLS or refuses a certificate
   */
  public static SSLContext context(Optional<Credentials> own, Collection<X509Certificate> trusted)
      throws GeneralSecurityException {
    SSLContext context = SSLContext.getInstance("TLS");
    KeyManager[] keys = own.map(it -> new KeyManager[] {keyManager(it)}).orElse(null);
    context.init(keys, new TrustManager[] {trustManager(trusted)}, null);
    return context;
  }

  /**
   * Makes a key manager that shows one certificate, whatever CAs the peer says that it knows: if it
   * does not know this one, it says so itself.
   *
   * @param own what it shows
   * @return a new one, thread-safe
   */
  public static X509ExtendedKeyManager keyManager(Credentials own) {
    return new OneKey(own);
  }

  /**
   * Makes a trust manager after RFC 5280.
   *
   * @param trusted CAs, at least one
   * @return a new one; it checks the peer's name where the TLS parameters say so
   * @throws GeneralSecurityException if the runtime refuses a certificate
   */
  public static X509ExtendedTrustManager trustManager(Collection<X509Certificate> trusted)
      throws GeneralSecurityException {
    TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
    factory.init(store(trusted));
    return Arrays.stream(factory.getTrustManagers())
        .filter(X509ExtendedTrustManager.class::isInstance)
        .map(X509ExtendedTrustManager.class::cast)
        .findFirst()
        .orElseThrow();
  }

  private static KeyStore store(Collection<X509Certificate> trusted)
      throws GeneralSecurityException {
    try {
      KeyStore store = KeyStore.getInstance("PKCS12");
      store.load(null, null);
      int number = 0;
      for (X509Certificate certificate : trusted) {
        store.setCertificateEntry("ca-" + number++, certificate);
      }
      return store;
    } catch (IOException e) {
      throw new GeneralSecurityException(e);
    }
  }

  private static final class OneKey extends X509ExtendedKeyManager {
    private final Credentials own;

    OneKey(Credentials own) {
      this.own = own;
    }

    private String alias(String... keyTypes) {
      return Arrays.asList(keyTypes).contains(own.key().getAlgorithm()) ? ALIAS : null;
    }

    @Override
    public String chooseEngineClientAlias(String[] types, Principal[] issuers, SSLEngine engine) {
      return alias(types);
    }

    @Override
    public String chooseEngineServerAlias(String type, Principal[] issuers, SSLEngine engine) {
      return alias(type);
    }

    @Override
    public String chooseClientAlias(String[] types, Principal[] issuers, Socket socket) {
      return alias(types);
    }

    @Override
    public String chooseServerAlias(String type, Principal[] issuers, Socket socket) {
      return alias(type);
    }

    @Override
    public String[] getClientAliases(String type, Principal[] issuers) {
      return aliases(type);
    }

    @Override
    public String[] getServerAliases(String type, Principal[] issuers) {
      return aliases(type);
    }

    private String[] aliases(String type) {
      String alias = alias(type);
      return alias == null ? null : new String[] {alias};
    }

    @Override
    public X509Certificate[] getCertificateChain(String alias) {
      return own.chain().toArray(X509Certificate[]::new);
    }

    @Override
    public PrivateKey getPrivateKey(String alias) {
      return own.key();
    }
  }
}
