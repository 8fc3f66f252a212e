package dev.cipherlane.transport.engine;

import dev.cipherlane.keyservice.TestCertificates;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;

/**
 * PKCS #12 files with the password {@code changeit}, for benchmarks; beside each lie the same in
 * PEM: {@code ca.pem}, {@code client.pem} and {@code client-key.pem}.
 *
 * @param server of 127.0.0.1
 * @param client of the same authority
 */
public record KeyFiles(Path server, Path client) {
  /** Makes an authority and both files in a folder, with keys of algorithm EC or RSA. */
  public static KeyFiles write(Path folder, String algorithm) throws IOException {
    TestCertificates authority = TestCertificates.create();
    return new KeyFiles(
        write(folder.resolve("server"), authority, authority.server("127.0.0.1", algorithm)),
        write(folder.resolve("client"), authority, authority.client(algorithm)));
  }

  private static Path write(
      Path folder, TestCertificates authority, TestCertificates.Identity identity)
      throws IOException {
    Files.createDirectories(folder);
    authority.files(folder, identity);
    try {
      return Keys.of(authority, identity).write(folder.resolve("keys.p12"));
    } catch (GeneralSecurityException e) {
      throw new IOException(e);
    }
  }
}
