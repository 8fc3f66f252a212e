package dev.cipherlane.identity;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.identity.IdentitySettings.Files;
import dev.cipherlane.identity.IdentitySettings.Jwt;
import dev.cipherlane.identity.IdentitySettings.Token;
import dev.cipherlane.keys.LeaseClock;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.cert.X509Certificate;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/** Reads what proves an identity while there is no certificate that holds. Thread-safe. */
final class FirstProofs {
  private static final int MAX_TOKEN = 8 * 1024; // spec/limits.md
  private static final Pattern TOKEN = Pattern.compile("[A-Za-z0-9._~+/=-]+");

  private final IdentitySettings settings;
  private final LeaseClock clock;
  private volatile String spentToken;

  FirstProofs(IdentitySettings settings, LeaseClock clock) {
    this.settings = settings;
    this.clock = clock;
  }

  /** The JWT, which is read for each call that needs it; empty where none is configured. */
  Optional<Proof> jwt(Set<X509Certificate> trusted) {
    return settings.first() instanceof Jwt jwt
        ? Optional.of(Proof.token(read(jwt.file()), trusted))
        : Optional.empty();
  }

  /** Reads the files. What they held before does not matter, but for a token that is spent. */
  Proof read(Set<X509Certificate> trusted) {
    if (settings.first() instanceof Files) {
      return Proof.certificate(files());
    }
    if (settings.first() instanceof Token token) {
      return Proof.token(unspent(read(token.file())), trusted);
    }
    return jwt(trusted).orElseThrow();
  }

  /** The certificate in the PEM files, if it holds. */
  Credentials files() {
    Credentials found = PemFiles.credentials(((Files) settings.first()).files(), clock);
    if (found.endsAt() <= clock.now()) {
      throw unusable("the certificate in the PEM files has ended");
    }
    return found;
  }

  private String unspent(String token) {
    if (token.equals(spentToken)) {
      throw unusable("the bootstrap token was used or refused before");
    }
    return token;
  }

  /** Notes that a token has done its work, or never will. */
  void spent(Proof proof) {
    if (settings.first() instanceof Token) {
      spentToken = proof.token().orElse(spentToken);
    }
  }

  /** Says what makes it work again when no certificate holds. */
  String advice() {
    if (settings.first() instanceof Files) {
      return "replace the files of cipherlane.keyservice.tls.certificate and .key by ones that hold";
    }
    return settings.first() instanceof Token
        ? "write a new bootstrap token into the file of cipherlane.identity.token.file"
        : "check the file of cipherlane.identity.jwt.file, and the key service";
  }

  private static String read(Path file) {
    try (InputStream in = java.nio.file.Files.newInputStream(file)) {
      String text = new String(in.readNBytes(MAX_TOKEN + 1), StandardCharsets.ISO_8859_1).strip();
      if (text.length() <= MAX_TOKEN && TOKEN.matcher(text).matches()) {
        return text;
      }
      throw unusable("the file " + file + " holds no token");
    } catch (IOException e) {
      throw unusable("the file " + file + " cannot be read");
    }
  }

  private static CipherlaneException unusable(String why) {
    return new CipherlaneException(ErrorCode.KEY_SERVICE_UNAVAILABLE, why);
  }
}
