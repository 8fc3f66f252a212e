package dev.cipherlane.identity;

import java.security.cert.CertificateParsingException;
import java.security.cert.X509Certificate;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Pattern;
import javax.naming.InvalidNameException;
import javax.naming.ldap.LdapName;
import javax.naming.ldap.Rdn;

/** The name that a certificate gives its holder [CL-API-002]. */
public final class PrincipalName {
  private static final int URI = 6; // of GeneralName (RFC 5280)
  private static final int MAX_BYTES = 512; // spec/limits.md
  private static final Pattern SPIFFE_ID =
      Pattern.compile("spiffe://[a-z0-9._-]{1,255}(/(?!\\.{1,2}(/|$))[A-Za-z0-9._-]+)+");
  private static final Pattern PRINTABLE = Pattern.compile("(?:[^\\p{C}\\p{Z}]| )+");

  private PrincipalName() {}

  /**
   * Reads the name.
   *
   * @param certificate a leaf that was verified
   * @return its one SPIFFE id, else its one common name; empty if it has no usable one
   */
  public static Optional<String> of(X509Certificate certificate) {
    try {
      List<String> ids = spiffeUris(certificate);
      return ids.isEmpty() ? commonName(certificate) : spiffeId(ids);
    } catch (CertificateParsingException | InvalidNameException e) {
      return Optional.empty();
    }
  }

  private static Optional<String> spiffeId(List<String> ids) {
    return ids.size() == 1 && isSpiffeId(ids.get(0)) ? Optional.of(ids.get(0)) : Optional.empty();
  }

  /**
   * Tells whether a text is a SPIFFE id with a path.
   *
   * @param text any text
   * @return whether it is one, of at most 512 bytes
   */
  public static boolean isSpiffeId(String text) {
    return text.length() <= MAX_BYTES && SPIFFE_ID.matcher(text).matches();
  }

  private static List<String> spiffeUris(X509Certificate certificate)
      throws CertificateParsingException {
    Collection<List<?>> names = certificate.getSubjectAlternativeNames();
    return names == null
        ? List.of()
        : names.stream()
            .filter(name -> name.get(0).equals(URI))
            .map(name -> (String) name.get(1))
            .filter(uri -> uri.toLowerCase(Locale.ROOT).startsWith("spiffe:"))
            .toList();
  }

  private static Optional<String> commonName(X509Certificate certificate)
      throws InvalidNameException {
    String subject = certificate.getSubjectX500Principal().getName();
    List<Rdn> names =
        new LdapName(subject)
            .getRdns().stream().filter(rdn -> rdn.getType().equalsIgnoreCase("CN")).toList();
    return names.size() == 1 && names.get(0).getValue() instanceof String name && usable(name)
        ? Optional.of(name)
        : Optional.empty();
  }

  private static boolean usable(String name) {
    return name.length() <= MAX_BYTES && !name.contains("://") && PRINTABLE.matcher(name).matches();
  }
}
