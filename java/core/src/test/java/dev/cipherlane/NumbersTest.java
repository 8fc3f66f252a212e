package dev.cipherlane;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.keys.KeySource;
import dev.cipherlane.keys.LeaseClock;
import dev.cipherlane.keys.Mode;
import dev.cipherlane.keys.Term;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What a client reports of itself: spec/kafka.md, "Numbers". */
class NumbersTest {
  private static final byte[] VALUE = {1};

  private final FakeKeySource source = new FakeKeySource();
  private final byte[] key = TestKeys.bytes();
  private final Encryptor encryptor = new Encryptor(source, LeaseClock.system(), Settings.of());
  private final Decryptor decryptor = new Decryptor(source, LeaseClock.system(), Settings.of());

  NumbersTest() {
    source.encryption =
        (topic, usage) ->
            new KeySource.EncryptionAnswer(
                Mode.ENCRYPT, Optional.of(TestKeys.dataKey("scope", key)), term());
    source.decryption =
        (topic, kids) ->
            new KeySource.DecryptionAnswer(
                topic.equals("open"),
                term(),
                kids.stream()
                    .collect(
                        Collectors.toMap(
                            kid -> kid,
                            kid ->
                                new KeySource.KeyGiven(TestKeys.dataKey("scope", key), term()))));
  }

  private static Term term() {
    return Term.of(LeaseClock.system().now(), 100, 200);
  }

  @AfterEach
  void close() {
    encryptor.close();
    decryptor.close();
  }

  private byte[] decrypt(String topic, byte[] value) {
    return decryptor.decrypt(topic, RecordKey.UNKNOWN, value, decryptor.deadline());
  }

  private static double value(Numbers numbers, String name, Map<String, String> tags) {
    return numbers.figures().stream()
        .filter(figure -> figure.name().equals(name) && figure.tags().equals(tags))
        .mapToDouble(figure -> figure.value().getAsDouble())
        .sum();
  }

  private static Set<String> names(Numbers numbers) {
    return numbers.figures().stream().map(Numbers.Figure::name).collect(Collectors.toSet());
  }

  @Test
  void namesAreThoseOfTheSpecification() {
    Set<String> common =
        Set.of(
            "failures-total",
            "key-requests-total",
            "key-request-failures-total",
            "keys-cached",
            "lease-seconds-left",
            "certificate-seconds-left",
            "added-nanoseconds");
    assertThat(names(encryptor.numbers())).containsAll(common).contains("records-encrypted-total");
    assertThat(names(encryptor.numbers())).hasSize(common.size() + 1);
    assertThat(names(decryptor.numbers()))
        .containsAll(common)
        .contains("records-decrypted-total", "skipped-total", "dead-lettered-total")
        .contains("marked-total", "plaintext-accepted-total")
        .hasSize(common.size() + 5);
  }

  @Test
  void countsRecordsAndFailuresByCode() {
    byte[] envelope = encryptor.encrypt("topic", VALUE);
    encryptor.encrypt("topic", null);
    decrypt("topic", envelope);
    decrypt("topic", null);
    decrypt("open", VALUE);
    assertThatThrownBy(() -> decrypt("topic", VALUE)).hasMessageContaining("plaintext-rejected");
    assertThatThrownBy(() -> decrypt("no topic", VALUE)).hasMessageContaining("topic-invalid");
    assertThat(encryptor.numbers().total(Counter.RECORDS_ENCRYPTED)).isEqualTo(1);
    assertThat(decryptor.numbers().total(Counter.RECORDS_DECRYPTED)).isEqualTo(1);
    assertThat(decryptor.numbers().total(Counter.PLAINTEXT_ACCEPTED)).isEqualTo(1);
    assertThat(value(decryptor.numbers(), "failures-total", Map.of("code", "plaintext-rejected")))
        .isEqualTo(1);
    assertThat(value(decryptor.numbers(), "failures-total", Map.of("code", "topic-invalid")))
        .isEqualTo(1);
    assertThat(value(decryptor.numbers(), "failures-total", Map.of("code", "internal"))).isZero();
  }

  @Test
  void countsKeysAndCalls() {
    assertThat(value(encryptor.numbers(), "lease-seconds-left", Map.of())).isNaN();
    encryptor.encrypt("topic", VALUE);
    assertThat(value(encryptor.numbers(), "key-requests-total", Map.of())).isEqualTo(1);
    assertThat(value(encryptor.numbers(), "keys-cached", Map.of())).isEqualTo(1);
    assertThat(value(encryptor.numbers(), "lease-seconds-left", Map.of())).isBetween(150.0, 200.0);
    source.encryption =
        (topic, usage) -> {
          throw new CipherlaneException(ErrorCode.KEY_SERVICE_UNAVAILABLE, "on purpose");
        };
    assertThatThrownBy(() -> encryptor.encrypt("other", VALUE))
        .hasMessageContaining("key-service-unavailable");
    assertThat(value(encryptor.numbers(), "key-request-failures-total", Map.of())).isEqualTo(1);
  }

  @Test
  void tellsWhatARecordTakes() {
    assertThat(value(encryptor.numbers(), "added-nanoseconds", Map.of())).isNaN();
    for (int i = 0; i < 100_000; i++) {
      decrypt("topic", encryptor.encrypt("topic", VALUE));
    }
    for (Numbers numbers : List.of(encryptor.numbers(), decryptor.numbers())) {
      assertThat(value(numbers, "added-nanoseconds", Map.of())).isBetween(50.0, 1e9);
    }
  }

  @Test
  void othersCountWhatTheySee() {
    decryptor.numbers().count(Counter.SKIPPED);
    decryptor.numbers().failed(ErrorCode.VALUE_TYPE);
    assertThat(decryptor.numbers().total(Counter.SKIPPED)).isEqualTo(1);
    assertThat(decryptor.numbers().failures(ErrorCode.VALUE_TYPE)).isEqualTo(1);
  }

  @Test
  void onlyErrorsOfOneRecordAreSubjectToAnAction() { // CL-KAF-020
    assertThat(ErrorCode.values())
        .filteredOn(ErrorCode::concernsRecord)
        .extracting(ErrorCode::code)
        .containsExactlyInAnyOrder(
            "envelope-too-short",
            "unsupported-version",
            "unsupported-flags",
            "record-key-unavailable",
            "key-unknown",
            "key-destroyed",
            "key-malformed",
            "key-id-mismatch",
            "authentication-failed",
            "decompression-failed",
            "plaintext-too-long",
            "plaintext-rejected",
            "scope-mismatch");
  }
}
