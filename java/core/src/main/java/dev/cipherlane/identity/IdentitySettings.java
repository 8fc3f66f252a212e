package dev.cipherlane.identity;

import java.nio.file.Path;
import java.util.List;

/**
 * Where an identity comes from.
 *
 * @param ca a PEM file with the CAs that the key service's certificate must chain to, always
 * @param first proves who this is before there is a certificate
 * @param renew whether certificates come from the key service
 * @param serverNames DNS names and addresses that they are to hold; empty for what is no server
 */
public record IdentitySettings(Path ca, FirstProof first, boolean renew, List<String> serverNames) {
  /** The first proof. */
  public sealed interface FirstProof {}

  /**
   * A certificate and its key; without renewal the only ones.
   *
   * @param files they and the CAs
   */
  public record Files(TlsFiles files) implements FirstProof {}

  /**
   * A bootstrap token.
   *
   * @param file holds the token
   */
  public record Token(Path file) implements FirstProof {}

  /**
   * A JWT.
   *
   * @param file holds the JWT, and newer ones later
   */
  public record Jwt(Path file) implements FirstProof {}
}
