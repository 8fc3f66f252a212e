package dev.cipherlane.keyservice;

import dev.cipherlane.CipherlaneException;
import dev.cipherlane.ErrorCode;
import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.identity.CertificateSource.Issued;
import dev.cipherlane.keys.DataKey;
import dev.cipherlane.keys.KeySource.DecryptionAnswer;
import dev.cipherlane.keys.KeySource.EncryptionAnswer;
import dev.cipherlane.keys.KeySource.KeyAnswer;
import dev.cipherlane.keys.KeySource.KeyGiven;
import dev.cipherlane.keys.KeySource.KeyRefused;
import dev.cipherlane.keys.Mode;
import java.util.Collection;
import java.util.EnumSet;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Reads the answers of status 200 as {@code spec/key-service.md} has them; strict [CL-KEY-003]. */
final class Answers {
  /** Codes that may stand beside a kid. */
  private static final Set<ErrorCode> OF_A_KID =
      EnumSet.of(
          ErrorCode.SCOPE_MISMATCH,
          ErrorCode.KEY_UNKNOWN,
          ErrorCode.KEY_DESTROYED,
          ErrorCode.NOT_AUTHORIZED);

  private Answers() {}

  static EncryptionAnswer encryptionKey(HttpAnswer http) {
    Fields answer = document(http);
    Mode mode =
        switch (answer.text("mode")) {
          case "encrypt" -> Mode.ENCRYPT;
          case "clear" -> Mode.CLEAR;
          case "forbid" -> Mode.FORBID;
          default -> throw Fields.bad("mode is unknown");
        };
    var term = answer.term(http.sentAt());
    Optional<DataKey> key =
        mode == Mode.ENCRYPT
            ? Optional.of(DataKey.of(answer.kid(), answer.scope(), answer.key()))
            : Optional.empty();
    return new EncryptionAnswer(mode, key, term);
  }

  static DecryptionAnswer decryptionKeys(HttpAnswer http, Collection<KeyId> asked) {
    Fields answer = document(http);
    boolean accepted =
        switch (answer.text("plaintext")) {
          case "accept" -> true;
          case "reject" -> false;
          default -> throw Fields.bad("plaintext is unknown");
        };
    var term = answer.term(http.sentAt());
    List<Fields> entries = answer.objects("keys");
    checkKids(entries, asked);
    return new DecryptionAnswer(accepted, term, keys(entries, http.sentAt()));
  }

  /** What is in it is checked by who asked. */
  static Issued certificate(HttpAnswer http) {
    Fields answer = document(http);
    return new Issued(answer.text("certificate"), answer.text("ca"), answer.term(http.sentAt()));
  }

  private static Fields document(HttpAnswer http) {
    if (http.status() != 200) {
      throw Refusals.of(http);
    }
    if (!http.mediaType().equals("application/json")) {
      throw Fields.bad("the answer is not application/json");
    }
    return Fields.parse(http.body());
  }

  /** Exactly one entry for each kid. */
  private static void checkKids(List<Fields> entries, Collection<KeyId> asked) {
    Set<KeyId> missing = new HashSet<>(asked);
    for (Fields entry : entries) {
      if (!missing.remove(entry.kid())) {
        throw Fields.bad("an answer for a kid that was not asked for, or twice for one");
      }
    }
    if (!missing.isEmpty()) {
      throw Fields.bad("no answer for " + missing.size() + " of the kids asked for");
    }
  }

  private static Map<KeyId, KeyAnswer> keys(List<Fields> entries, long sentAt) {
    Map<KeyId, KeyAnswer> keys = new LinkedHashMap<>();
    try {
      entries.forEach(entry -> keys.put(entry.kid(), key(entry, sentAt)));
    } catch (CipherlaneException e) {
      keys.values().forEach(Answers::wipe);
      throw e;
    }
    return keys;
  }

  private static void wipe(KeyAnswer answer) {
    if (answer instanceof KeyGiven given) {
      given.key().destroy();
    }
  }

  private static KeyAnswer key(Fields entry, long sentAt) {
    if (entry.has("error")) {
      return refused(entry);
    }
    var term = entry.term(sentAt);
    String scope = entry.scope();
    byte[] key = entry.key();
    try {
      return new KeyGiven(DataKey.of(entry.kid(), scope, key), term);
    } catch (CipherlaneException e) {
      // One key that is wrong says nothing of the others.
      return new KeyRefused(e);
    }
  }

  private static KeyAnswer refused(Fields entry) {
    if (entry.has("key")) {
      throw Fields.bad("a key and an error for one kid");
    }
    Fields error = entry.object("error");
    ErrorCode code =
        ErrorCode.ofKeyService(error.text("code"))
            .filter(OF_A_KID::contains)
            .orElse(ErrorCode.NOT_AUTHORIZED);
    String detail = error.has("detail") ? Refusals.printable(error.text("detail")) : "refused";
    return new KeyRefused(new CipherlaneException(code, null, entry.kid(), detail, null));
  }
}
