package dev.cipherlane.transport;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.Configuration;
import dev.cipherlane.Settings;
import dev.cipherlane.SharedIdentity;
import dev.cipherlane.identity.Credentials;
import dev.cipherlane.identity.Identity;
import dev.cipherlane.identity.TlsFiles;
import dev.cipherlane.keyservice.TestCertificates;
import dev.cipherlane.transport.engine.TlsEngines;
import io.netty.util.IllegalReferenceCountException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Map;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Who shares engines with whom, and until when. */
class SharedEnginesTest {
  private static Configuration configuration;
  private static EngineSettings settings;

  @BeforeAll
  static void configure(@TempDir Path folder) {
    TestCertificates authority = TestCertificates.create();
    TlsFiles files = authority.files(folder, authority.client("EC"));
    Map<String, Object> all =
        Settings.map(
            "cipherlane.tls.engine", "boringssl",
            "cipherlane.keyservice.tls.ca", files.ca().toString(),
            "cipherlane.keyservice.tls.certificate", files.certificate().toString(),
            "cipherlane.keyservice.tls.key", files.key().toString());
    configuration = Configuration.of(all);
    settings = EngineSettings.of(all, configuration.peers());
  }

  private static Credentials credentials() {
    try (Identity identity = SharedIdentity.of(configuration)) {
      return identity.credentials();
    }
  }

  /** Ends it too, because engines keep alive what made them. */
  private static void makeOne(TlsEngines engines) {
    SSLEngine engine = engines.server("127.0.0.1", 40_000, settings.parameters());
    engine.closeOutbound();
    try {
      engine.wrap(ByteBuffer.allocate(0), ByteBuffer.allocate(40_000));
    } catch (SSLException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void assertFreed(TlsEngines engines) {
    assertThatThrownBy(() -> makeOne(engines)).isInstanceOf(IllegalReferenceCountException.class);
  }

  @Test
  void nativeMemoryIsFreedByTheLast() {
    Credentials own = credentials();
    var first = SharedEngines.of(own, settings);
    var second = SharedEngines.of(own, settings);
    assertThat(second.engines()).isSameAs(first.engines());
    first.end().run();
    makeOne(second.engines());
    second.end().run();
    assertFreed(second.engines());
    var third = SharedEngines.of(own, settings);
    makeOne(third.engines());
    third.end().run();
  }

  @Test
  void anotherCertificateHasOthers() {
    var before = SharedEngines.of(credentials(), settings);
    var after = SharedEngines.of(credentials(), settings);
    assertThat(after.engines()).isNotSameAs(before.engines());
    before.end().run();
    makeOne(after.engines());
    after.end().run();
  }

  /** A network thread that has had no connection for long keeps the old ones until its next. */
  @Test
  void aRenewedCertificateReplacesThoseOfTheOneBefore() {
    Credentials before = credentials();
    Credentials after = credentials();
    var idle = new CurrentEngines(now -> SharedEngines.of(now, settings));
    var busy = new CurrentEngines(now -> SharedEngines.of(now, settings));
    TlsEngines old = idle.of(before);
    assertThat(busy.of(before)).isSameAs(old);
    assertThat(busy.of(after)).isNotSameAs(old).isSameAs(busy.of(after));
    makeOne(old);
    assertThat(idle.of(after)).isSameAs(busy.of(after));
    assertFreed(old);
    idle.close();
    makeOne(busy.of(after));
    busy.close();
    assertThatThrownBy(() -> busy.of(after)).hasMessageContaining("closed");
  }
}
