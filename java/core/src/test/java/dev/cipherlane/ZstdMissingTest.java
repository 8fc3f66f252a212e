package dev.cipherlane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.gson.Gson;
import dev.cipherlane.cipher.EncryptingSession;
import dev.cipherlane.envelope.Envelope;
import dev.cipherlane.envelope.Header;
import dev.cipherlane.keys.DataKey;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keys.Term;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** A class path without the library for compressed records: they have their own error. */
class ZstdMissingTest {
  /** What runs there; public, because it is called from another class loader. */
  public static final class Reader {
    private Reader() {}

    /** Reads a compressed record and gives the error's message. */
    public static String read() {
      byte[] key = TestKeys.bytes();
      FakeKeySource source = new FakeKeySource();
      Term term = Term.of(LeaseClock.system().now(), 100, 100);
      source.decryption =
          (topic, kids) ->
              new KeySource.DecryptionAnswer(
                  false,
                  term,
                  Map.of(
                      kids.get(0), new KeySource.KeyGiven(TestKeys.dataKey("scope", key), term)));
      try (Decryptor decryptor = new Decryptor(source, LeaseClock.system(), Settings.of())) {
        byte[] value = compressed(TestKeys.dataKey("scope", key));
        return catchThrowableOfType(
                CipherlaneException.class,
                () -> decryptor.decrypt("topic", RecordKey.UNKNOWN, value, decryptor.deadline()))
            .getMessage();
      }
    }

    private static byte[] compressed(DataKey key) {
      Header header = Header.of(Envelope.FLAG_ZSTD, key.kid(), key.scope());
      byte[] frame = {0x28, (byte) 0xB5, 0x2F, (byte) 0xFD, 0x20, 0x00, 0x01, 0x00, 0x00};
      byte[] envelope = header.newEnvelope(frame.length);
      EncryptingSession.begin(key.secret(), 0)
          .tryEncrypt(header.aad(), frame, envelope, Envelope.NONCE_OFFSET, 0);
      return envelope;
    }
  }

  @Test
  void compressedRecordsAreRefusedClearly() throws Exception { // CL-ENV-011
    URL[] without =
        Stream.of(Decryptor.class, Reader.class, Gson.class, Test.class, AssertionsOf.JAR)
            .map(type -> type.getProtectionDomain().getCodeSource().getLocation())
            .toArray(URL[]::new);
    try (URLClassLoader loader =
        new URLClassLoader(without, ClassLoader.getPlatformClassLoader())) {
      Object message = loader.loadClass(Reader.class.getName()).getMethod("read").invoke(null);
      assertThat(message.toString())
          .contains("decompression-failed")
          .contains("zstd-jni")
          .contains("missing");
    }
  }

  /** The library that {@link Reader} itself uses. */
  private static final class AssertionsOf {
    static final Class<?> JAR = org.assertj.core.api.Assertions.class;
  }
}
