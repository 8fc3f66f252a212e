package dev.cipherlane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.cipherlane.envelope.Envelope;
import dev.cipherlane.keys.DataKey;
import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keys.Mode;
import dev.cipherlane.keys.Term;
import dev.cipherlane.keys.Usage;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Compression before encryption, binding of record keys, and what is reported of both. */
class WritingTest {
  private static final byte[] KEY = {1, 2, 3};
  private static final byte[] REPETITIVE =
      "compress me! ".repeat(200).getBytes(StandardCharsets.UTF_8);

  private final FakeKeySource source = new FakeKeySource();
  private final byte[] key = TestKeys.bytes();
  private final List<Usage> reported = new CopyOnWriteArrayList<>();
  private final Decryptor decryptor = new Decryptor(source, LeaseClock.system(), Settings.of());
  private Mode mode = Mode.ENCRYPT;
  private Encryptor encryptor;

  WritingTest() {
    source.encryption =
        (topic, usage) -> {
          usage.ifPresent(reported::add);
          return new KeySource.EncryptionAnswer(
              mode, mode == Mode.ENCRYPT ? Optional.of(dataKey()) : Optional.empty(), term());
        };
    source.decryption =
        (topic, kids) ->
            new KeySource.DecryptionAnswer(
                false, term(), Map.of(kids.get(0), new KeySource.KeyGiven(dataKey(), term())));
  }

  private DataKey dataKey() {
    return TestKeys.dataKey("scope", key);
  }

  private static Term term() {
    return Term.of(LeaseClock.system().now(), 100, 100);
  }

  @AfterEach
  void close() {
    decryptor.close();
    if (encryptor != null) {
      encryptor.close();
    }
  }

  private byte[] encrypt(RecordKey recordKey, byte[] value, Object... settings) {
    encryptor = new Encryptor(source, LeaseClock.system(), Settings.of(settings));
    return encryptor.encrypt("claims", recordKey, value);
  }

  private byte[] decrypt(RecordKey recordKey, byte[] envelope) {
    return decryptor.decrypt("claims", recordKey, envelope, decryptor.deadline());
  }

  private static ErrorCode failure(org.assertj.core.api.ThrowableAssert.ThrowingCallable call) {
    return catchThrowableOfType(CipherlaneException.class, call).code();
  }

  @Test
  void compressesWhereItIsOn() { // CL-ENV-045
    byte[] envelope =
        encrypt(RecordKey.UNKNOWN, REPETITIVE, "cipherlane.compression.topics", "cl*");
    assertThat(Envelope.parse(envelope).flags()).isEqualTo(Envelope.FLAG_ZSTD);
    assertThat(envelope.length).isLessThan(REPETITIVE.length / 10);
    assertThat(decrypt(RecordKey.UNKNOWN, envelope)).isEqualTo(REPETITIVE);
  }

  @Test
  void frameStatesItsContentSize() { // CL-ENV-045
    byte[] frame = Zstd.compress(REPETITIVE).orElseThrow();
    assertThat(com.github.luben.zstd.Zstd.getFrameContentSize(frame)).isEqualTo(REPETITIVE.length);
  }

  @ParameterizedTest
  @CsvSource({"2600, true", "2601, false", "0, true"})
  void shortValuesAreNotCompressed(int from, boolean compressed) { // CL-ENV-045
    byte[] envelope =
        encrypt(
            RecordKey.UNKNOWN,
            REPETITIVE,
            "cipherlane.compression.topics",
            "claims",
            "cipherlane.compression.min.bytes",
            from);
    assertThat(Envelope.parse(envelope).compressed()).isEqualTo(compressed);
    assertThat(decrypt(RecordKey.UNKNOWN, envelope)).isEqualTo(REPETITIVE);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 20, 1024, 100_000})
  void whatWouldNotBeShorterIsNotCompressed(int size) { // CL-ENV-045
    byte[] value = new byte[size];
    new Random(size).nextBytes(value);
    byte[] envelope =
        encrypt(
            RecordKey.UNKNOWN,
            value,
            "cipherlane.compression.topics",
            "claims",
            "cipherlane.compression.min.bytes",
            0);
    assertThat(Envelope.parse(envelope).flags()).isZero();
    assertThat(envelope).hasSize(size + Envelope.OVERHEAD);
    assertThat(decrypt(RecordKey.UNKNOWN, envelope)).isEqualTo(value);
  }

  @Test
  void otherTopicsAreNotCompressed() { // CL-ENV-043
    assertThat(encrypt(RecordKey.UNKNOWN, REPETITIVE, "cipherlane.compression.topics", "other"))
        .hasSize(REPETITIVE.length + Envelope.OVERHEAD);
  }

  @Test
  void limitAndReportCountWhatTheApplicationGave() { // CL-ENV-046 CL-ENV-042
    Object[] settings = {
      "cipherlane.compression.topics", "*", "cipherlane.max.plaintext.bytes", REPETITIVE.length
    };
    encrypt(RecordKey.UNKNOWN, REPETITIVE, settings);
    byte[] longer = java.util.Arrays.copyOf(REPETITIVE, REPETITIVE.length + 1);
    assertThat(failure(() -> encryptor.encrypt("claims", longer)))
        .isEqualTo(ErrorCode.PLAINTEXT_TOO_LONG);
    encryptor.close();
    assertThat(reported).containsExactly(new Usage(TestKeys.kid(key), 1, REPETITIVE.length));
  }

  @Test
  void clearValuesAreNotCompressed() { // CL-ENV-041
    mode = Mode.CLEAR;
    assertThat(encrypt(RecordKey.UNKNOWN, REPETITIVE, "cipherlane.compression.topics", "*"))
        .isSameAs(REPETITIVE);
  }

  @Test
  void bindsTheRecordKey() { // CL-KAF-030 CL-ENV-021
    byte[] envelope =
        encrypt(RecordKey.of(KEY), REPETITIVE, "cipherlane.record.key.topics", "claims");
    assertThat(Envelope.parse(envelope).flags()).isEqualTo(Envelope.FLAG_KEY_BOUND);
    assertThat(decrypt(RecordKey.of(KEY.clone()), envelope)).isEqualTo(REPETITIVE);
    for (byte[] other : new byte[][] {null, {}, {1, 2}, {1, 2, 4}}) {
      assertThat(failure(() -> decrypt(RecordKey.of(other), envelope)))
          .isEqualTo(ErrorCode.AUTHENTICATION_FAILED);
    }
    assertThat(failure(() -> decrypt(RecordKey.UNKNOWN, envelope)))
        .isEqualTo(ErrorCode.RECORD_KEY_UNAVAILABLE);
  }

  @Test
  void nullAndEmptyKeysAreBoundAndDiffer() { // CL-KAF-030
    byte[] ofNull = encrypt(RecordKey.of(null), KEY, "cipherlane.record.key.topics", "*");
    byte[] ofEmpty = encryptor.encrypt("claims", RecordKey.of(new byte[0]), KEY);
    assertThat(decrypt(RecordKey.of(null), ofNull)).isEqualTo(KEY);
    assertThat(decrypt(RecordKey.of(new byte[0]), ofEmpty)).isEqualTo(KEY);
    assertThat(failure(() -> decrypt(RecordKey.of(new byte[0]), ofNull)))
        .isEqualTo(ErrorCode.AUTHENTICATION_FAILED);
    assertThat(failure(() -> decrypt(RecordKey.of(null), ofEmpty)))
        .isEqualTo(ErrorCode.AUTHENTICATION_FAILED);
  }

  @Test
  void unknownKeysAreRefusedWhereTheyWouldBeBound() { // CL-KAF-031
    assertThat(
            failure(() -> encrypt(RecordKey.UNKNOWN, KEY, "cipherlane.record.key.topics", "cl*")))
        .isEqualTo(ErrorCode.RECORD_KEY_UNAVAILABLE);
    assertThat(encryptor.numbers().failures(ErrorCode.RECORD_KEY_UNAVAILABLE)).isEqualTo(1);
    assertThat(encryptor.encrypt("other", KEY)).isNotNull();
    assertThat(encryptor.encrypt("claims", null)).as("a tombstone binds nothing").isNull();
  }

  @Test
  void compressedAndBound() { // CL-ENV-043
    byte[] envelope =
        encrypt(
            RecordKey.of(KEY),
            REPETITIVE,
            "cipherlane.record.key.topics",
            "claims",
            "cipherlane.compression.topics",
            "claims");
    assertThat(Envelope.parse(envelope).flags())
        .isEqualTo(Envelope.FLAG_ZSTD | Envelope.FLAG_KEY_BOUND);
    assertThat(decrypt(RecordKey.of(KEY), envelope)).isEqualTo(REPETITIVE);
  }
}
