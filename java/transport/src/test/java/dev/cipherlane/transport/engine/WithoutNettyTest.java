package dev.cipherlane.transport.engine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.cipherlane.keyservice.TestCertificates;
import java.io.File;
import java.io.IOException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.Arrays;
import javax.net.ssl.X509ExtendedKeyManager;
import javax.net.ssl.X509ExtendedTrustManager;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Where classes of Netty are missing there is the JDK's engine, whatever was asked for. */
class WithoutNettyTest {
  /** This class path once more, without the classes whose names begin so. */
  private static final class Lacking extends URLClassLoader {
    private final String missing;

    Lacking(String missing) {
      super(classPath(), ClassLoader.getPlatformClassLoader());
      this.missing = missing;
    }

    private static URL[] classPath() {
      return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
          .map(Lacking::url)
          .toArray(URL[]::new);
    }

    private static URL url(String entry) {
      try {
        return Path.of(entry).toUri().toURL();
      } catch (IOException e) {
        throw new IllegalStateException(e);
      }
    }

    @Override
    protected Class<?> findClass(String name) throws ClassNotFoundException {
      if (name.startsWith(missing)) {
        throw new ClassNotFoundException(name);
      }
      return super.findClass(name);
    }
  }

  @ParameterizedTest
  @CsvSource({
    "auto, io.netty.",
    "auto, io.netty.internal.tcnative.",
    "auto, io.netty.handler.ssl.OpenSslContextOption", // as in an old release
    "boringssl, io.netty.",
    "boringssl, io.netty.internal.tcnative.",
    "boringssl, io.netty.handler.ssl.OpenSslContextOption",
    "jdk, io.netty."
  })
  void theJdksEngineIsUsed(String asked, String missing) throws Exception {
    assertThat(used(asked, missing)).isEqualTo(EngineKind.JDK.toString());
  }

  @ParameterizedTest
  @CsvSource({"auto, boringssl", "boringssl, boringssl", "jdk, jdk", "jdk-plain, jdk-plain"})
  void otherwiseTheEngineIsTheOneAskedFor(String asked, String used) throws Exception {
    assertThat(used(asked, "none")).isEqualTo(used);
  }

  private static String used(String asked, String missing) throws Exception {
    TestCertificates authority = TestCertificates.create();
    Keys keys = Keys.of(authority, authority.client("EC"));
    try (Lacking classes = new Lacking(missing)) {
      Class<?> engines = classes.loadClass(TlsEngines.class.getName());
      Class<?> kind = classes.loadClass(EngineKind.class.getName());
      Object made =
          engines
              .getMethod(
                  "create", X509ExtendedKeyManager.class, X509ExtendedTrustManager.class, kind)
              .invoke(
                  null,
                  keys.keyManager(),
                  keys.trustManager(),
                  kind.getMethod("of", String.class).invoke(null, asked));
      String used = engines.getMethod("kind").invoke(made).toString();
      engines.getMethod("close").invoke(made);
      return used;
    }
  }
}
