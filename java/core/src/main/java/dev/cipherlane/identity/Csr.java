package dev.cipherlane.identity;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.KeyPair;
import java.security.Signature;
import java.util.Base64;
import java.util.List;

/**
 * Writes certification requests (PKCS #10, RFC 2986) for keys on P-256. Written out here because
 * Java has no such class and a request is some thirty nested lengths, while a library for it weighs
 * ten times this module. The subject stays empty: the key service knows who asks.
 */
final class Csr {
  private static final int INTEGER = 0x02;
  private static final int BIT_STRING = 0x03;
  private static final int OCTET_STRING = 0x04;
  private static final int SEQUENCE = 0x30;
  private static final int SET = 0x31;
  private static final int ATTRIBUTES = 0xA0; // [0], constructed
  private static final int DNS_NAME = 0x82; // [2] of GeneralName (RFC 5280)
  private static final int IP_ADDRESS = 0x87; // [7] of GeneralName

  // With tag and length.
  private static final byte[] ECDSA_WITH_SHA256 = oid(0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x04, 0x03, 2);
  private static final byte[] EXTENSION_REQUEST =
      oid(0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x09, 0x0E);
  private static final byte[] SUBJECT_ALT_NAME = oid(0x55, 0x1D, 0x11);

  private Csr() {}

  /**
   * Writes a request.
   *
   * @param keys on P-256
   * @param serverNames DNS names and addresses to ask for; mostly none
   * @return PEM
   */
  static String pem(KeyPair keys, List<String> serverNames) {
    byte[] info =
        der(
            SEQUENCE,
            der(INTEGER, new byte[] {0}),
            der(SEQUENCE),
            keys.getPublic().getEncoded(),
            attributes(serverNames));
    byte[] signature = sign(keys, info);
    byte[] unusedBits = {0};
    byte[] request =
        der(
            SEQUENCE,
            info,
            der(SEQUENCE, ECDSA_WITH_SHA256),
            der(BIT_STRING, unusedBits, signature));
    String base64 = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(request);
    return "-----BEGIN CERTIFICATE REQUEST-----\n"
        + base64
        + "\n-----END CERTIFICATE REQUEST-----\n";
  }

  private static byte[] sign(KeyPair keys, byte[] info) {
    try {
      Signature signer = Signature.getInstance("SHA256withECDSA");
      signer.initSign(keys.getPrivate());
      signer.update(info);
      return signer.sign();
    } catch (GeneralSecurityException e) {
      throw new IllegalStateException("this Java runtime cannot sign with ECDSA", e);
    }
  }

  private static byte[] attributes(List<String> serverNames) {
    if (serverNames.isEmpty()) {
      return der(ATTRIBUTES);
    }
    byte[][] names = serverNames.stream().map(Csr::generalName).toArray(byte[][]::new);
    byte[] extension = der(SEQUENCE, SUBJECT_ALT_NAME, der(OCTET_STRING, der(SEQUENCE, names)));
    return der(ATTRIBUTES, der(SEQUENCE, EXTENSION_REQUEST, der(SET, der(SEQUENCE, extension))));
  }

  private static byte[] generalName(String name) {
    return ServerNames.address(name)
        .map(address -> der(IP_ADDRESS, address))
        .orElseGet(() -> der(DNS_NAME, name.getBytes(StandardCharsets.US_ASCII)));
  }

  private static byte[] oid(int... bytes) {
    byte[] content = new byte[bytes.length];
    for (int i = 0; i < bytes.length; i++) {
      content[i] = (byte) bytes[i];
    }
    return der(0x06, content);
  }

  /** Tag, length, and the parts in order. */
  private static byte[] der(int tag, byte[]... parts) {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      content.writeBytes(part);
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(tag);
    writeLength(out, content.size());
    out.writeBytes(content.toByteArray());
    return out.toByteArray();
  }

  private static void writeLength(ByteArrayOutputStream out, int length) {
    if (length < 0x80) {
      out.write(length);
    } else if (length < 0x100) {
      out.write(0x81);
      out.write(length);
    } else {
      out.write(0x82); // 16 names of 253 bytes stay below 65,536
      out.write(length >> 8);
      out.write(length);
    }
  }
}
