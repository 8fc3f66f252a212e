package dev.cipherlane;

import static org.quicktheories.QuickTheory.qt;
import static org.quicktheories.generators.SourceDSL.arbitrary;
import static org.quicktheories.generators.SourceDSL.integers;
import static org.quicktheories.generators.SourceDSL.lists;

import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.envelope.Envelope;
import dev.cipherlane.keys.DataKey;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keys.Mode;
import dev.cipherlane.keys.Term;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.quicktheories.core.Gen;

/**
 * What holds for every value, record key, change and input. A failure prints its seed and the
 * smallest example that was found; {@code -DQT_SEED} and {@code -DQT_EXAMPLES} repeat and prolong.
 */
class EnvelopePropertiesTest {
  /** Topics {@code bound-*} bind the record key, {@code packed-*} compress. */
  private static final List<String> TOPICS =
      List.of("plain", "bound-x", "packed-x", "bound-packed");

  private static final Configuration CONFIGURATION =
      Settings.of(
          "cipherlane.record.key.topics", "bound-*",
          "cipherlane.compression.topics", "packed-*,*-packed");

  private final byte[] key = TestKeys.bytes();
  private final FakeKeySource source = new FakeKeySource();
  private final Encryptor encryptor = new Encryptor(source, LeaseClock.system(), CONFIGURATION);
  private final Decryptor decryptor = new Decryptor(source, LeaseClock.system(), CONFIGURATION);

  /** What somebody in the middle may do to bytes, at places that are taken modulo the size. */
  private enum Change {
    FLIP {
      @Override
      byte[] applied(byte[] to, int at, int by) {
        byte[] changed = to.clone();
        changed[at] ^= (byte) (1 << (by & 7));
        return changed;
      }
    },
    SET {
      @Override
      byte[] applied(byte[] to, int at, int by) {
        byte[] changed = to.clone();
        changed[at] = (byte) by;
        return changed;
      }
    },
    CUT {
      @Override
      byte[] applied(byte[] to, int at, int by) {
        return Arrays.copyOf(to, at);
      }
    },
    EXTEND {
      @Override
      byte[] applied(byte[] to, int at, int by) {
        return Arrays.copyOf(to, to.length + 1 + (by & 63));
      }
    },
    DROP_BEGINNING {
      @Override
      byte[] applied(byte[] to, int at, int by) {
        return Arrays.copyOfRange(to, at, to.length);
      }
    },
    SWAP {
      @Override
      byte[] applied(byte[] to, int at, int by) {
        byte[] changed = to.clone();
        int other = Math.floorMod(by, to.length);
        changed[at] = to[other];
        changed[other] = to[at];
        return changed;
      }
    };

    abstract byte[] applied(byte[] to, int at, int by);
  }

  private record Step(Change change, int at, int by) {
    byte[] applied(byte[] to) {
      return to.length == 0 ? to : change.applied(to, Math.floorMod(at, to.length), by);
    }
  }

  EnvelopePropertiesTest() {
    source.encryption =
        (topic, usage) ->
            new KeySource.EncryptionAnswer(Mode.ENCRYPT, Optional.of(dataKey()), term());
    source.decryption =
        (topic, kids) ->
            new KeySource.DecryptionAnswer(
                false, term(), kids.stream().collect(Collectors.toMap(kid -> kid, this::answer)));
  }

  private KeySource.KeyAnswer answer(KeyId kid) {
    return kid.equals(TestKeys.kid(key))
        ? new KeySource.KeyGiven(dataKey(), term())
        : new KeySource.KeyRefused(new CipherlaneException(ErrorCode.KEY_UNKNOWN, "no such key"));
  }

  private DataKey dataKey() {
    return TestKeys.dataKey("scope", key);
  }

  private static Term term() {
    return Term.of(LeaseClock.system().now(), 3_600, 3_600);
  }

  @AfterEach
  void close() {
    encryptor.close();
    decryptor.close();
  }

  /** Of few different bytes, so that some compress. */
  private static Gen<byte[]> values(int max) {
    return lists()
        .of(integers().between(-3, 3))
        .ofSizeBetween(0, max)
        .map(EnvelopePropertiesTest::toBytes)
        .describedAs(Arrays::toString);
  }

  private static Gen<byte[]> anyBytes(int max) {
    return lists()
        .of(integers().between(Byte.MIN_VALUE, Byte.MAX_VALUE))
        .ofSizeBetween(0, max)
        .map(EnvelopePropertiesTest::toBytes)
        .describedAs(Arrays::toString);
  }

  private static byte[] toBytes(List<Integer> numbers) {
    byte[] bytes = new byte[numbers.size()];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = numbers.get(i).byteValue();
    }
    return bytes;
  }

  private static Gen<RecordKey> recordKeys() {
    return anyBytes(40).map(bytes -> RecordKey.of(bytes.length == 7 ? null : bytes));
  }

  private static Gen<Step> steps() {
    return arbitrary().enumValues(Change.class).zip(integers().all(), integers().all(), Step::new);
  }

  private byte[] decrypt(String topic, RecordKey recordKey, byte[] value) {
    return decryptor.decrypt(topic, recordKey, value, decryptor.deadline());
  }

  /** Whether it ends in an error that the specification knows for a record, and in no other way. */
  private boolean refused(String topic, RecordKey recordKey, byte[] value) {
    try {
      decrypt(topic, recordKey, value);
      return false;
    } catch (CipherlaneException e) {
      return e.code().concernsRecord();
    }
  }

  @Test
  void whatIsEncryptedIsDecrypted() { // CL-ENV-021 CL-ENV-040 CL-ENV-043
    qt().forAll(arbitrary().pick(TOPICS), recordKeys(), values(3_000))
        .check(
            (topic, recordKey, value) -> {
              byte[] envelope = encryptor.encrypt(topic, recordKey, value);
              return Envelope.wellFormed(envelope)
                  && Arrays.equals(decrypt(topic, recordKey, envelope), value);
            });
  }

  @Test
  void whatWasChangedIsRefused() { // CL-ENV-010 CL-ENV-012
    qt().withExamples(5_000)
        .forAll(arbitrary().pick(TOPICS), values(300), lists().of(steps()).ofSizeBetween(1, 4))
        .check(
            (topic, value, steps) -> {
              RecordKey recordKey = RecordKey.of(null);
              byte[] envelope = encryptor.encrypt(topic, recordKey, value);
              byte[] changed = envelope;
              for (Step step : steps) {
                changed = step.applied(changed);
              }
              return Arrays.equals(changed, envelope) || refused(topic, recordKey, changed);
            });
  }

  @Test
  void anotherRecordKeyIsRefused() { // CL-ENV-008
    qt().forAll(recordKeys(), anyBytes(40), values(100))
        .check(
            (written, read, value) ->
                Arrays.equals(written.bytes(), read)
                    || refused(
                        "bound-x",
                        RecordKey.of(read),
                        encryptor.encrypt("bound-x", written, value)));
  }

  @Test
  void anyBytesEndInAnErrorOfTheParser() { // CL-ENV-004 CL-ENV-005 CL-ENV-006 CL-ENV-007
    qt().withExamples(20_000)
        .forAll(anyBytes(120), integers().between(0, 5))
        .check(
            (generated, known) -> {
              byte[] bytes = generated.clone();
              byte[] start = {(byte) 0xC1, (byte) 0x9E, 1, 0, 0};
              System.arraycopy(start, 0, bytes, 0, Math.min(known, bytes.length));
              return refused("plain", RecordKey.of(null), bytes) && parserAgrees(bytes);
            });
  }

  private static boolean parserAgrees(byte[] bytes) {
    if (!Envelope.isEnvelope(bytes)) {
      return true;
    }
    try {
      return Envelope.parse(bytes).plaintextSize() >= 0 && Envelope.wellFormed(bytes);
    } catch (CipherlaneException e) {
      return !Envelope.wellFormed(bytes);
    }
  }
}
