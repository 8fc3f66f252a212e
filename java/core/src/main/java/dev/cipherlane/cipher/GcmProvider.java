package dev.cipherlane.cipher;

import java.lang.reflect.InvocationTargetException;
import java.security.Provider;
import java.util.Optional;

/**
 * Who does AES-GCM: Amazon's Corretto Crypto Provider, if it is on the class path and passes its
 * self-tests here, else whom the Java runtime prefers. It makes less garbage, and is faster from 1
 * KB on. It is not registered with the runtime: what else the application does stays as it is.
 */
final class GcmProvider {
  private static final String CORRETTO =
      "com.amazon.corretto.crypto.provider.AmazonCorrettoCryptoProvider";

  /** Empty: whom the Java runtime prefers. */
  static final Optional<Provider> CHOSEN = find(GcmProvider.class.getClassLoader());

  private GcmProvider() {}

  /** Looked for once, without a class of it at compile time. */
  static Optional<Provider> find(ClassLoader loader) {
    try {
      Class<?> type = Class.forName(CORRETTO, true, loader);
      Object provider = type.getDeclaredConstructor().newInstance();
      // Throws where the native library does not load, or a test failed.
      type.getMethod("assertHealthy").invoke(provider);
      return Optional.of((Provider) provider);
    } catch (InvocationTargetException e) {
      System.getLogger(GcmProvider.class.getName())
          .log(
              System.Logger.Level.WARNING,
              "Amazon Corretto Crypto Provider cannot be used here: " + e.getCause());
      return Optional.empty();
    } catch (ReflectiveOperationException | LinkageError e) {
      return Optional.empty();
    }
  }
}
