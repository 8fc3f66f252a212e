package dev.cipherlane.keys;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.cipher.KeyId;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;

/** Whom the caches ask: the key service's client, or another in tests. Thread-safe. */
public interface KeySource extends AutoCloseable {
  /** Kids that one call may ask for ({@code spec/limits.md}). */
  int MAX_KIDS = 1000;

  /**
   * Asks for the key to encrypt a topic with. Blocks.
   *
   * @param topic the topic
   * @param usage what to report
   * @return the answer
   * @throws CipherlaneException if it was refused, or there is no answer
   */
  EncryptionAnswer encryptionKey(String topic, Optional<Usage> usage);

  /**
   * Asks for keys to decrypt records of a topic with. Blocks.
   *
   * @param topic the topic that the records were read from
   * @param kids 0 to {@value #MAX_KIDS} different key ids
   * @return the answer
   * @throws CipherlaneException if it was refused as a whole, or there is no answer
   */
  DecryptionAnswer decryptionKeys(String topic, List<KeyId> kids);

  @Override
  void close();

  /**
   * The answer for encryption.
   *
   * @param mode what the policy says
   * @param key the data key; empty unless the mode is {@link Mode#ENCRYPT}
   * @param term of key and mode
   */
  record EncryptionAnswer(Mode mode, Optional<DataKey> key, Term term) {
    /**
     * Changes the terms.
     *
     * @param change what to make of each
     * @return the same answer otherwise
     */
    public EncryptionAnswer withTerms(UnaryOperator<Term> change) {
      return new EncryptionAnswer(mode, key, change.apply(term));
    }
  }

  /**
   * The answer for decryption.
   *
   * @param plaintextAccepted what the policy says of plaintext
   * @param term of that
   * @param keys for each kid that was asked for, and no other
   */
  record DecryptionAnswer(boolean plaintextAccepted, Term term, Map<KeyId, KeyAnswer> keys) {
    /**
     * Changes the terms.
     *
     * @param change what to make of each
     * @return the same answer otherwise
     */
    public DecryptionAnswer withTerms(UnaryOperator<Term> change) {
      Map<KeyId, KeyAnswer> changed = new LinkedHashMap<>();
      keys.forEach(
          (kid, answer) ->
              changed.put(
                  kid,
                  answer instanceof KeyGiven given
                      ? new KeyGiven(given.key(), change.apply(given.term()))
                      : answer));
      return new DecryptionAnswer(plaintextAccepted, change.apply(term), changed);
    }
  }

  /** What the answer says of one kid. */
  sealed interface KeyAnswer {}

  /**
   * A key.
   *
   * @param key the data key, checked against its kid
   * @param term of the key
   */
  record KeyGiven(DataKey key, Term term) implements KeyAnswer {}

  /**
   * A refusal.
   *
   * @param error says why
   */
  record KeyRefused(CipherlaneException error) implements KeyAnswer {}
}
