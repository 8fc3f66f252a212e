// What JMH measures for `make -C java bench-envelope`.
package dev.cipherlane.benchmarks;

import com.google.crypto.tink.AccessesPartialKey;
import com.google.crypto.tink.Aead;
import com.google.crypto.tink.KeysetHandle;
import com.google.crypto.tink.RegistryConfiguration;
import com.google.crypto.tink.aead.AeadConfig;
import com.google.crypto.tink.aead.XAesGcmKey;
import com.google.crypto.tink.aead.XAesGcmParameters;
import com.google.crypto.tink.util.SecretBytes;
import dev.cipherlane.Configuration;
import dev.cipherlane.Decryptor;
import dev.cipherlane.Encryptor;
import dev.cipherlane.RecordKey;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.Provider;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/**
 * Encrypting and decrypting one value: with the bare cipher and a counter for nonce, with
 * Cipherlane and a real key service, with Tink. Each gives a new array.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class EnvelopeBenchmarks {
  /** Property: folder with the clients' properties, {@code producer} and {@code consumer}. */
  static final String FOLDER = "bench.folder";

  /** Property: class of the provider of the bare cipher; empty for the runtime's. */
  static final String PROVIDER = "bench.provider";

  /** By how much the result of each method is longer than the value, in bytes. */
  static final Map<String, Integer> OVERHEAD =
      Map.of(
          "rawEncrypt",
          28,
          "cipherlaneEncrypt",
          60,
          "tinkEncrypt",
          40,
          "rawDecrypt",
          0,
          "cipherlaneDecrypt",
          0,
          "tinkDecrypt",
          0);

  private static final String TOPIC = "bench-envelope";
  private static final int TAG_BITS = 128;
  private static final int KEY_SIZE = 32;
  private static final int NONCE_SIZE = 12;
  private static final int COUNTER_OFFSET = 8;
  private static final int TAG_SIZE = 16;
  // Start of the envelope, size of the scope, scope.
  private static final byte[] AAD = new byte[20 + 2 + TOPIC.length()];

  /** Bytes of a value. */
  @Param({"128"})
  public int size;

  private byte[] plaintext;
  private byte[] ciphertext;
  private byte[] envelope;
  private byte[] tinkCiphertext;
  private int counter;
  private Cipher encrypting;
  private Cipher decrypting;
  private SecretKeySpec key;
  private Encryptor encryptor;
  private Decryptor decryptor;
  private long deadline;
  private Aead tink;

  /** For JMH. */
  public EnvelopeBenchmarks() {}

  /**
   * Makes all that the benchmarks need.
   *
   * @throws Exception if something is missing
   */
  @Setup
  public void setUp() throws Exception {
    plaintext = new byte[size];
    new Random(size).nextBytes(plaintext);
    key = new SecretKeySpec(new byte[KEY_SIZE], "AES");
    encrypting = cipher();
    decrypting = cipher();
    ciphertext = rawEncrypt();
    encryptor = new Encryptor(configuration("producer"));
    decryptor = new Decryptor(configuration("consumer"));
    deadline = decryptor.deadline(); // Consumers ask once for each batch.
    envelope = encryptor.encrypt(TOPIC, plaintext);
    AeadConfig.register();
    tink = newTink();
    tinkCiphertext = tink.encrypt(plaintext, AAD);
  }

  @AccessesPartialKey
  private static Aead newTink() throws GeneralSecurityException {
    XAesGcmParameters parameters =
        XAesGcmParameters.create(XAesGcmParameters.Variant.NO_PREFIX, NONCE_SIZE);
    XAesGcmKey key = XAesGcmKey.create(parameters, SecretBytes.randomBytes(KEY_SIZE), null);
    return KeysetHandle.newBuilder()
        .addEntry(KeysetHandle.importKey(key).withRandomId().makePrimary())
        .build()
        .getPrimitive(RegistryConfiguration.get(), Aead.class);
  }

  private static Cipher cipher() throws ReflectiveOperationException, GeneralSecurityException {
    String provider = System.getProperty(PROVIDER, "");
    return provider.isEmpty()
        ? Cipher.getInstance("AES/GCM/NoPadding")
        : Cipher.getInstance(
            "AES/GCM/NoPadding",
            Class.forName(provider)
                .asSubclass(Provider.class)
                .getDeclaredConstructor()
                .newInstance());
  }

  private static Configuration configuration(String name) throws IOException {
    Properties properties = new Properties();
    try (var reader = Files.newBufferedReader(Path.of(System.getProperty(FOLDER), name))) {
      properties.load(reader);
    }
    Map<String, Object> settings = new HashMap<>();
    properties.forEach((property, value) -> settings.put(property.toString(), value));
    return Configuration.of(settings);
  }

  /** Ends the clients. */
  @TearDown
  public void tearDown() {
    encryptor.close();
    decryptor.close();
  }

  /**
   * The bare cipher.
   *
   * @return nonce, ciphertext and tag
   * @throws GeneralSecurityException never
   */
  @Benchmark
  public byte[] rawEncrypt() throws GeneralSecurityException {
    byte[] out = new byte[NONCE_SIZE + size + TAG_SIZE];
    ByteBuffer.wrap(out).putInt(COUNTER_OFFSET, counter++);
    encrypting.init(Cipher.ENCRYPT_MODE, key, new GCMParameterSpec(TAG_BITS, out, 0, NONCE_SIZE));
    encrypting.updateAAD(AAD);
    encrypting.doFinal(plaintext, 0, size, out, NONCE_SIZE);
    return out;
  }

  /**
   * The bare cipher.
   *
   * @return the plaintext
   * @throws GeneralSecurityException never
   */
  @Benchmark
  public byte[] rawDecrypt() throws GeneralSecurityException {
    decrypting.init(
        Cipher.DECRYPT_MODE, key, new GCMParameterSpec(TAG_BITS, ciphertext, 0, NONCE_SIZE));
    decrypting.updateAAD(AAD);
    return decrypting.doFinal(ciphertext, NONCE_SIZE, ciphertext.length - NONCE_SIZE);
  }

  /**
   * All that an application calls.
   *
   * @return an envelope
   */
  @Benchmark
  public byte[] cipherlaneEncrypt() {
    return encryptor.encrypt(TOPIC, plaintext);
  }

  /**
   * All that an application calls.
   *
   * @return the plaintext
   */
  @Benchmark
  public byte[] cipherlaneDecrypt() {
    return decryptor.decrypt(TOPIC, RecordKey.UNKNOWN, envelope, deadline);
  }

  /**
   * Tink's X-AES-GCM.
   *
   * @return nonce, ciphertext and tag
   * @throws GeneralSecurityException never
   */
  @Benchmark
  public byte[] tinkEncrypt() throws GeneralSecurityException {
    return tink.encrypt(plaintext, AAD);
  }

  /**
   * Tink's X-AES-GCM.
   *
   * @return the plaintext
   * @throws GeneralSecurityException never
   */
  @Benchmark
  public byte[] tinkDecrypt() throws GeneralSecurityException {
    return tink.decrypt(tinkCiphertext, AAD);
  }
}
