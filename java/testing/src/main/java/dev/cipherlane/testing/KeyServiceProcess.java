package dev.cipherlane.testing;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * The real key service as a child process, for tests, with a policy of the test's and the embedded
 * store. It ends when this process does. Not thread-safe.
 */
public final class KeyServiceProcess implements AutoCloseable {
  private static final String CONFIGURATION =
      """
      listen: 127.0.0.1:8443
      tls: {certificate: server.pem, key: server-key.pem, client_ca: ca.pem}
      policy: policy.yaml
      store: {embedded: {path: keys.db, kek: kek.json}}
      audit: {file: audit.jsonl}
      """;

  private static Path binary;

  private final Path folder;
  private final Path log;
  private String listen = "127.0.0.1:0";
  private Process process;
  private JsonObject ready;

  private KeyServiceProcess(Path folder) {
    this.folder = folder;
    this.log = folder.resolve("keyservice.log");
  }

  /**
   * Starts one.
   *
   * @param folder where it keeps all its files
   * @param policy the text of the policy file
   * @return the key service, which answers
   * @throws IOException if it cannot be built or does not start; the message has its log
   */
  public static KeyServiceProcess start(Path folder, String policy) throws IOException {
    return start(folder, policy, "certificates: {ca: embedded}");
  }

  /**
   * Starts one that is configured for more than laptops.
   *
   * @param folder where it keeps all its files
   * @param policy the text of the policy file
   * @param sections of {@code keyservice.yaml}, for example {@code certificates: {ca: embedded,
   *     bootstrap_tokens: true}}; paths in them are relative to the folder {@code dev} in the
   *     folder given
   * @return the key service, which answers
   * @throws IOException if it cannot be built or does not start; the message has its log
   */
  public static KeyServiceProcess start(Path folder, String policy, String sections)
      throws IOException {
    KeyServiceProcess service = new KeyServiceProcess(folder);
    Files.createDirectories(
        folder.resolve("dev"),
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    Files.writeString(folder.resolve("dev/keyservice.yaml"), CONFIGURATION + sections + "\n");
    Files.writeString(service.policy(), policy);
    service.start();
    return service;
  }

  /**
   * Starts it again, with the same address and keys, after {@link #kill}.
   *
   * @throws IOException if it does not start
   */
  public void start() throws IOException {
    process =
        new ProcessBuilder(
                binary().toString(),
                "dev",
                "--dir=" + folder.resolve("dev"),
                "--policy=" + policy(),
                "--listen=" + listen,
                "--json",
                "--until-stdin-closes")
            .redirectError(ProcessBuilder.Redirect.appendTo(log.toFile()))
            .start();
    var output =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    String line = output.readLine();
    if (line == null) {
      throw new IOException("the key service did not start: " + Files.readString(log));
    }
    ready = JsonParser.parseString(line).getAsJsonObject();
    listen = url().substring("https://".length());
  }

  /**
   * Runs the operator's tool, as the operator of the laptop mode.
   *
   * @param arguments for example {@code token, spiffe://dev.cipherlane/producer}
   * @return its standard output, and its standard error
   * @throws IOException if it fails; the message has both
   */
  public String operate(String... arguments) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(binary().resolveSibling("cipherlane").toString());
    command.addAll(List.of(arguments));
    command.add("--config=" + folder.resolve("dev/cipherlane.yaml"));
    return run(command);
  }

  /**
   * Replaces the policy, which it takes over within seconds.
   *
   * @param policy the text of the policy file
   * @throws IOException if it cannot be written
   */
  public void policy(String policy) throws IOException {
    Files.writeString(policy(), policy);
  }

  /** Built from the sources beside this module, which takes a second when it is up to date. */
  private static synchronized Path binary() throws IOException {
    if (binary == null) {
      Path sources = repository().resolve("keyservice");
      run(List.of("make", "-s", "-C", sources.toString(), "build"));
      binary = sources.resolve("build/bin/cipherlane-keyservice");
    }
    return binary;
  }

  private static Path repository() throws IOException {
    for (Path at = Path.of("").toAbsolutePath(); at != null; at = at.getParent()) {
      if (Files.isDirectory(at.resolve("keyservice")) && Files.isDirectory(at.resolve("spec"))) {
        return at;
      }
    }
    throw new IOException("no folder keyservice above the working directory");
  }

  private static String run(List<String> command) throws IOException {
    // Not to this process's own streams: the test runner talks over them.
    Path output = Files.createTempFile("cipherlane-build-", ".log");
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    try {
      if (!process.waitFor(10, TimeUnit.MINUTES) || process.exitValue() != 0) {
        process.destroyForcibly();
        throw new IOException(String.join(" ", command) + " failed:\n" + Files.readString(output));
      }
      return Files.readString(output);
    } catch (InterruptedException e) {
      process.destroyForcibly();
      throw new IllegalStateException(e);
    } finally {
      Files.delete(output);
    }
  }

  private Path policy() {
    return folder.resolve("policy.yaml");
  }

  /**
   * Tells where it listens.
   *
   * @return {@code https://host:port}
   */
  public String url() {
    return ready.get("url").getAsString();
  }

  /**
   * Tells where the CA certificate is.
   *
   * @return a PEM file
   */
  public Path caFile() {
    return Path.of(ready.get("ca").getAsString());
  }

  /**
   * Tells where the audit log is.
   *
   * @return one JSON object a line
   */
  public Path auditFile() {
    return Path.of(ready.get("audit").getAsString());
  }

  /**
   * Makes the settings of a client.
   *
   * @param principal which of those that the laptop mode has: {@code producer}, {@code consumer},
   *     {@code operator}, {@code stranger}
   * @return where the key service is and who is asking; a new map
   */
  public Map<String, Object> settings(String principal) {
    JsonObject files = ready.getAsJsonObject("principals").getAsJsonObject(principal);
    Map<String, Object> settings = new HashMap<>();
    settings.put("cipherlane.keyservice.urls", url());
    settings.put("cipherlane.keyservice.tls.ca", caFile().toString());
    settings.put("cipherlane.keyservice.tls.certificate", files.get("certificate").getAsString());
    settings.put("cipherlane.keyservice.tls.key", files.get("key").getAsString());
    settings.put("cipherlane.keys.retry.backoff.ms", "50");
    // For machines that do much else at the same time: the default of the first is 2 s.
    settings.put("cipherlane.keyservice.connect.timeout.ms", "10000");
    settings.put("cipherlane.keyservice.request.timeout.ms", "10000");
    return settings;
  }

  /**
   * Ends it without warning.
   *
   * @throws InterruptedException if interrupted while waiting for its end
   */
  public void kill() throws InterruptedException {
    process.destroyForcibly().waitFor();
  }

  @Override
  public void close() throws IOException {
    try {
      process.getOutputStream().close();
      if (!process.waitFor(20, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
