package dev.cipherlane.transport;

import dev.cipherlane.identity.PrincipalName;
import java.security.cert.X509Certificate;
import javax.net.ssl.SSLPeerUnverifiedException;
import org.apache.kafka.common.errors.AuthenticationException;
import org.apache.kafka.common.security.auth.AuthenticationContext;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.KafkaPrincipalBuilder;
import org.apache.kafka.common.security.auth.KafkaPrincipalSerde;
import org.apache.kafka.common.security.auth.SslAuthenticationContext;
import org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder;

/**
 * Tells a broker who its peer is, as the key service would [CL-API-002]: {@code
 * principal.builder.class} with the name of this class makes ACLs for {@code
 * User:spiffe://example.org/claims-writer}. Who is authenticated by something else than TLS is who
 * Kafka says. Thread-safe.
 */
public final class SpiffePrincipalBuilder implements KafkaPrincipalBuilder, KafkaPrincipalSerde {
  // For the other protocols, and for the form in which brokers tell controllers of principals.
  private final DefaultKafkaPrincipalBuilder kafkas = new DefaultKafkaPrincipalBuilder(null, null);

  /**
   * Names the peer of a connection.
   *
   * @throws AuthenticationException if its certificate names no principal: nobody becomes {@code
   *     ANONYMOUS} because of that
   */
  @Override
  public KafkaPrincipal build(AuthenticationContext context) {
    return context instanceof SslAuthenticationContext tls
        ? ofCertificate(tls)
        : kafkas.build(context);
  }

  private static KafkaPrincipal ofCertificate(SslAuthenticationContext tls) {
    try {
      X509Certificate leaf = (X509Certificate) tls.session().getPeerCertificates()[0];
      return PrincipalName.of(leaf)
          .map(name -> new KafkaPrincipal(KafkaPrincipal.USER_TYPE, name))
          .orElseThrow(() -> new AuthenticationException("the certificate names no principal"));
    } catch (SSLPeerUnverifiedException e) {
      throw new AuthenticationException("there is no client certificate", e);
    }
  }

  @Override
  public byte[] serialize(KafkaPrincipal principal) {
    return kafkas.serialize(principal);
  }

  @Override
  public KafkaPrincipal deserialize(byte[] bytes) {
    return kafkas.deserialize(bytes);
  }
}
