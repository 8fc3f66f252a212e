package dev.cipherlane.keyservice;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.cipherlane.identity.PemIdentity;
import dev.cipherlane.identity.TlsFiles;
import java.io.IOException;
import java.net.http.HttpClient;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Renewed certificates are taken over, and what cannot be used is not. CL-KEY-016 */
class KeyServiceHttpTest {
  @TempDir Path folder;
  @TempDir Path next;

  private final AtomicLong clock = new AtomicLong();
  private final TestCertificates ca = TestCertificates.create();
  private TlsFiles files;
  private KeyServiceHttp http;
  private HttpClient first;

  @BeforeEach
  void make() {
    files = ca.files(folder, ca.client("EC"));
    http = new KeyServiceHttp(new PemIdentity(files, clock::get), Duration.ofSeconds(1));
    first = http.get();
  }

  private HttpClient later() {
    clock.addAndGet(PemIdentity.LOOK_NANOS);
    return http.get();
  }

  private void replace(Path file, Path by) throws IOException {
    Files.move(by, file, StandardCopyOption.REPLACE_EXISTING);
  }

  @Test
  void unchangedFilesKeepTheConnections() {
    for (int i = 0; i < 10; i++) {
      assertThat(later()).isSameAs(first);
    }
  }

  @Test
  void looksAtTheFilesWithinAMinute() throws IOException {
    assertThat(PemIdentity.LOOK_NANOS).isLessThanOrEqualTo(60_000_000_000L);
    TlsFiles renewed = ca.files(next, ca.client("RSA"));
    replace(files.certificate(), renewed.certificate());
    replace(files.key(), renewed.key());
    clock.addAndGet(PemIdentity.LOOK_NANOS - 1);
    assertThat(http.get()).isSameAs(first);
    clock.addAndGet(1);
    HttpClient second = http.get();
    assertThat(second).isNotSameAs(first);
    assertThat(later()).isSameAs(second);
  }

  @Test
  void certificateWithoutItsKeyIsTakenOnceTheKeyIsThere() throws IOException {
    TlsFiles renewed = ca.files(next, ca.client("EC"));
    replace(files.certificate(), renewed.certificate());
    assertThat(later()).isSameAs(first);
    replace(files.key(), renewed.key());
    assertThat(later()).isNotSameAs(first);
  }

  @Test
  void filesThatCannotBeUsedLeaveTheOldOnesInForce() throws IOException {
    byte[] good = Files.readAllBytes(files.certificate());
    for (String bad : new String[] {"", "garbage", "-----BEGIN CERTIFICATE-----\n"}) {
      Files.writeString(files.certificate(), bad);
      assertThat(later()).as(bad).isSameAs(first);
    }
    Files.delete(files.certificate());
    assertThat(later()).isSameAs(first);
    Files.write(files.certificate(), good);
    Files.setLastModifiedTime(files.certificate(), FileTime.fromMillis(7));
    assertThat(later()).isNotSameAs(first);
  }

  @Test
  void caThatChangedIsTakenOver() throws IOException {
    TestCertificates other = TestCertificates.create();
    replace(files.ca(), other.files(next, other.client("EC")).ca());
    assertThat(later()).isNotSameAs(first);
  }

  @Test
  void keyOfAnotherCertificateIsRefused() throws IOException { // CL-CFG-002
    for (String algorithm : new String[] {"EC", "RSA", "Ed25519"}) {
      replace(files.key(), ca.files(next, ca.client(algorithm)).key());
      assertThatThrownBy(
              () -> new KeyServiceHttp(new PemIdentity(files, clock::get), Duration.ofSeconds(1)))
          .as(algorithm)
          .hasMessageContaining("configuration-invalid")
          .hasMessageContaining("cipherlane.keyservice.tls.key");
    }
  }
}
