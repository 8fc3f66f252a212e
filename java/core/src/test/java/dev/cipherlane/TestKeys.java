package dev.cipherlane;

import dev.cipherlane.cipher.KeyId;
import dev.cipherlane.cipher.Secret;
import dev.cipherlane.keys.DataKey;
import java.security.SecureRandom;

/** Data keys made at test time. */
public final class TestKeys {
  private static final SecureRandom RANDOM = new SecureRandom();

  private TestKeys() {}

  public static byte[] bytes() {
    byte[] key = new byte[Secret.SIZE];
    RANDOM.nextBytes(key);
    return key;
  }

  /** The kid of a key, whose bytes stay as they are. */
  public static KeyId kid(byte[] key) {
    Secret secret = Secret.take(key.clone());
    KeyId kid = KeyId.of(secret);
    secret.destroy();
    return kid;
  }

  public static DataKey dataKey(String scope, byte[] key) {
    return DataKey.of(kid(key), scope, key.clone());
  }

  public static DataKey dataKey(String scope) {
    return dataKey(scope, bytes());
  }
}
