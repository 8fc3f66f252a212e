package dev.cipherlane.benchmarks;

import java.security.GeneralSecurityException;
import java.security.Provider;
import java.util.Map;
import java.util.Optional;
import javax.net.ssl.SSLContext;
import org.apache.kafka.common.security.auth.SecurityProviderCreator;
import org.wildfly.openssl.OpenSSLContextSPI;

/**
 * Gives Kafka WildFly OpenSSL ({@code security.providers}), which uses the system's OpenSSL. Its
 * own provider also offers plain {@code TLS}, and Kafka puts providers before the JDK's: all rows
 * of a broker would have it then.
 */
public final class WildflyProvider implements SecurityProviderCreator {
  private static final String NAME = "wildfly";
  private static final String PROTOCOL = "openssl.TLS";

  @Override
  public Provider getProvider() {
    return new Only();
  }

  /** Says why it cannot be used here, if it cannot. */
  static Optional<String> missing() {
    try {
      SSLContext.getInstance(PROTOCOL, new Only());
      return Optional.empty();
    } catch (GeneralSecurityException | LinkageError | RuntimeException e) {
      return Optional.of(cause(e).toString());
    }
  }

  private static Throwable cause(Throwable e) {
    return e.getCause() == null ? e : cause(e.getCause());
  }

  private static final class Only extends Provider {
    private static final long serialVersionUID = 1;

    Only() {
      super(NAME, "1", "WildFly OpenSSL under its own name alone");
      putService(
          new Service(
              this,
              "SSLContext",
              PROTOCOL,
              OpenSSLContextSPI.OpenSSLTLSContextSpi.class.getName(),
              null,
              Map.of()));
    }
  }
}
