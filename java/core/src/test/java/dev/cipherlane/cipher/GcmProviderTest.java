package dev.cipherlane.cipher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Security;
import java.util.Arrays;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Who does AES-GCM: the tests of this package run once with each. */
class GcmProviderTest {
  private static final String CORRETTO = "AmazonCorrettoCryptoProvider";

  @TempDir Path folder;

  @Test
  void correttoIsUsedWhereItIsOnTheClassPath() {
    assumeThat(System.getProperty("os.name") + " " + System.getProperty("os.arch"))
        .isEqualTo("Linux amd64");
    boolean expected = Boolean.getBoolean("cipherlane.test.corretto");
    assertThat(GcmProvider.CHOSEN.map(provider -> provider.getName()))
        .isEqualTo(expected ? java.util.Optional.of(CORRETTO) : java.util.Optional.empty());
  }

  @Test
  void runtimeStaysAsItWas() {
    assertThat(Arrays.stream(Security.getProviders()).map(provider -> provider.getName()))
        .doesNotContain(CORRETTO);
  }

  @Test
  void whatFailsItsSelfTestIsNotUsed() throws Exception {
    assertThat(found("", "throw new IllegalStateException(\"self-test\");")).isEmpty();
  }

  @Test
  void whatDoesNotLoadIsNotUsed() throws Exception {
    assertThat(found("throw new UnsatisfiedLinkError();", "")).isEmpty();
  }

  @Test
  void healthyOneIsUsed() throws Exception {
    assertThat(found("", "")).isNotEmpty();
  }

  /** Compiles a provider of that name, with code for its constructor and its self-test. */
  private java.util.Optional<?> found(String constructor, String selfTest) throws Exception {
    Path source =
        Files.createDirectories(folder.resolve("com/amazon/corretto/crypto/provider"))
            .resolve(CORRETTO + ".java");
    Files.writeString(
        source,
        """
        package com.amazon.corretto.crypto.provider;
        public class AmazonCorrettoCryptoProvider extends java.security.Provider {
          public AmazonCorrettoCryptoProvider() { super("fake", "1", ""); if (true) { %s } }
          public void assertHealthy() { %s }
        }
        """
            .formatted(constructor, selfTest),
        StandardCharsets.UTF_8);
    assertThat(ToolProvider.getSystemJavaCompiler().run(null, null, null, source.toString()))
        .isZero();
    URL[] path = {folder.toUri().toURL()};
    try (URLClassLoader loader = new URLClassLoader(path, ClassLoader.getPlatformClassLoader())) {
      return GcmProvider.find(loader);
    }
  }
}
