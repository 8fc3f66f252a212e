package dev.cipherlane.identity;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;

/** The names of a server, as they stand in certificates: DNS names and addresses. */
public final class ServerNames {
  /** Most names in one request ({@code spec/limits.md}). */
  public static final int MAX = 16;

  private static final String LABEL = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?";
  private static final Pattern DNS =
      Pattern.compile("(?=.{1,253}$)" + LABEL + "(\\." + LABEL + ")*");
  private static final Pattern NUMBER_AT_THE_END = Pattern.compile("(.*\\.)?[0-9]+");
  private static final String BYTE = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
  private static final Pattern IPV4 = Pattern.compile(BYTE + "(\\." + BYTE + "){3}");
  // InetAddress takes nothing else with a colon, and asks no name server about it.
  private static final Pattern IPV6 =
      Pattern.compile("[0-9a-fA-F:.]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*");

  private ServerNames() {}

  /**
   * Tells whether names may be asked for [CL-IDN-026].
   *
   * @param names DNS names in lowercase, and addresses
   * @return whether all are well-formed, and no more than {@value #MAX}
   */
  public static boolean valid(List<String> names) {
    return names.size() <= MAX && names.stream().allMatch(ServerNames::valid);
  }

  private static boolean valid(String name) {
    boolean dns = DNS.matcher(name).matches() && !NUMBER_AT_THE_END.matcher(name).matches();
    return dns || address(name).isPresent();
  }

  /** The bytes of an address; empty for what is none. */
  static Optional<byte[]> address(String name) {
    if (!IPV4.matcher(name).matches() && !IPV6.matcher(name).matches()) {
      return Optional.empty();
    }
    try {
      return Optional.of(InetAddress.getByName(name).getAddress());
    } catch (UnknownHostException e) {
      return Optional.empty();
    }
  }
}
