package dev.cipherlane.cipher;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.crypto.AEADBadTagException;
import javax.crypto.SecretKey;

/**
 * Decrypts, with a bounded cache of derived keys by key id and the first 12 bytes of the nonce: the
 * records of one encrypting session derive once. What leaves the cache is wiped. Thread-safe.
 */
public final class DerivedKeys {
  /** Derived keys held at once ({@code spec/limits.md}). */
  public static final int MAX = 4096;

  private static final VarHandle LONGS =
      MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.BIG_ENDIAN);
  private static final VarHandle INTS =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.BIG_ENDIAN);

  private record Id(KeyId kid, long nonceHigh, int nonceLow) {
    boolean isOf(KeyId other, byte[] in, int offset) {
      return nonceHigh == (long) LONGS.get(in, offset)
          && nonceLow == (int) INTS.get(in, offset + Long.BYTES)
          && kid.equals(other);
    }
  }

  private record Derived(Id id, Secret key) {}

  private final Map<Id, Secret> keys = new LinkedHashMap<>(16, 0.75f, true);

  /** Makes an empty cache. */
  public DerivedKeys() {}

  /**
   * Makes a reader, which remembers the key that it used last: records come in runs under one
   * session, and then need neither the lock nor a search.
   *
   * @return one for each consumer; thread-safe, but threads that share one disturb each other
   */
  public Reader reader() {
    return new Reader();
  }

  /** One reader's way to the derived keys. */
  public final class Reader {
    private volatile Derived last;

    private Reader() {}

    /**
     * Verifies and decrypts.
     *
     * @param kid the data key's id
     * @param dataKey the data key
     * @param aad the additional data
     * @param in nonce, ciphertext and tag, from {@code offset} to the end
     * @param offset where the nonce begins; at least 40 bytes follow
     * @return the plaintext
     * @throws AEADBadTagException if the tag does not fit
     * @throws IllegalStateException if the data key was destroyed
     */
    public byte[] decrypt(KeyId kid, SecretKey dataKey, byte[] aad, byte[] in, int offset)
        throws AEADBadTagException {
      try {
        Secret key = key(kid, dataKey, in, offset);
        return Gcm.decrypt(key, aad, in, offset + Xaes.DERIVING_SIZE);
      } catch (IllegalStateException e) {
        if (dataKey.isDestroyed()) {
          throw e;
        }
        // Another thread pushed the derived key out of the cache, which wiped it. This one is
        // nobody else's.
        return decryptOnce(dataKey, aad, in, offset);
      }
    }

    private Secret key(KeyId kid, SecretKey dataKey, byte[] in, int offset) {
      Derived known = last;
      if (known != null && known.id.isOf(kid, in, offset) && !known.key.isDestroyed()) {
        return known.key;
      }
      Id id = id(kid, in, offset);
      Derived found = new Derived(id, derived(id, dataKey, in, offset));
      last = found;
      return found.key;
    }
  }

  private static byte[] decryptOnce(SecretKey dataKey, byte[] aad, byte[] in, int offset)
      throws AEADBadTagException {
    Secret derived = Xaes.derive(dataKey, in, offset);
    try {
      return Gcm.decrypt(derived, aad, in, offset + Xaes.DERIVING_SIZE);
    } finally {
      derived.destroy();
    }
  }

  private static Id id(KeyId kid, byte[] in, int offset) {
    return new Id(kid, (long) LONGS.get(in, offset), (int) INTS.get(in, offset + Long.BYTES));
  }

  private Secret derived(Id id, SecretKey dataKey, byte[] in, int offset) {
    synchronized (keys) {
      Secret known = keys.get(id);
      if (known != null) {
        return known;
      }
      // Within the lock, as forget() is: what a wiped key derived cannot come in after it.
      Secret derived = Xaes.derive(dataKey, in, offset);
      keys.put(id, derived);
      removeOldest();
      return derived;
    }
  }

  private void removeOldest() {
    if (keys.size() > MAX) {
      Iterator<Secret> oldestFirst = keys.values().iterator();
      oldestFirst.next().destroy();
      oldestFirst.remove();
    }
  }

  /**
   * Wipes all that was derived from a data key. To be called once that key is destroyed, and not
   * before.
   *
   * @param kid the data key's id
   */
  public void forget(KeyId kid) {
    synchronized (keys) {
      keys.entrySet()
          .removeIf(entry -> entry.getKey().kid().equals(kid) && wiped(entry.getValue()));
    }
  }

  private static boolean wiped(Secret key) {
    key.destroy();
    return true;
  }

  /**
   * Counts.
   *
   * @return derived keys held now, 0 to 4,096
   */
  public int size() {
    synchronized (keys) {
      return keys.size();
    }
  }
}
