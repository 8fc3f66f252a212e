package dev.cipherlane;

import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keys.Term;
import java.util.Map;

/**
 * For Jazzer, by {@code make fuzz}: whatever a record holds, reading it ends in a {@link
 * CipherlaneException}. Nobody has the key, so nothing may be accepted.
 */
public final class EnvelopeFuzz {
  private static final byte[] KEY = TestKeys.bytes();
  private static final Decryptor DECRYPTOR = decryptor();

  private EnvelopeFuzz() {}

  private static Decryptor decryptor() {
    FakeKeySource source = new FakeKeySource();
    source.decryption =
        (topic, kids) -> {
          Term term = Term.of(LeaseClock.system().now(), 100, 100);
          return new KeySource.DecryptionAnswer(
              false,
              term,
              kids.isEmpty()
                  ? Map.of()
                  : Map.of(kids.get(0), new KeySource.KeyGiven(TestKeys.dataKey("s", KEY), term)));
        };
    return new Decryptor(source, LeaseClock.system(), Settings.of("cipherlane.keys.cache.max", 16));
  }

  /** One input; the first bytes of a well-formed one come from here, so that more is reached. */
  public static void fuzzerTestOneInput(byte[] input) {
    refused(input);
    byte[] envelope = input.clone();
    byte[] start = {(byte) 0xC1, (byte) 0x9E, 1};
    System.arraycopy(start, 0, envelope, 0, Math.min(start.length, envelope.length));
    refused(envelope);
  }

  private static void refused(byte[] value) {
    try {
      DECRYPTOR.decrypt("topic", RecordKey.of(null), value, DECRYPTOR.deadline());
    } catch (CipherlaneException e) {
      if (e.code() != ErrorCode.INTERNAL) {
        return;
      }
      throw e;
    }
    throw new AssertionError("accepted");
  }
}
