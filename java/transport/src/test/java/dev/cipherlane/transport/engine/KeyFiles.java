package dev.cipherlane.transport.engine;

import dev.cipherlane.keyservice.TestCertificates;
import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;

/**
 * PKCS #12 files with the password {@code changeit}, for benchmarks.
 *
 * @param server of 127.0.0.1
 * @param client of the same authority
 */
public record KeyFiles(Path server, Path client) {
  /** Makes an authority and both files in a folder, with keys of algorithm EC or RSA. */
  public static KeyFiles write(Path folder, String algorithm) throws IOException {
    TestCertificates authority = TestCertificates.create();
    try {
      return new KeyFiles(
          Keys.of(authority, authority.server("127.0.0.1", algorithm))
              .write(folder.resolve("server.p12")),
          Keys.of(authority, authority.client(algorithm)).write(folder.resolve("client.p12")));
    } catch (GeneralSecurityException e) {
      throw new IOException(e);
    }
  }
}
