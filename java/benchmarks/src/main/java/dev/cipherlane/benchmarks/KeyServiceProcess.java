// The real key service as a child process, in its laptop mode.
package dev.cipherlane.benchmarks;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** Started with a policy that encrypts every topic of the benchmark. Not thread-safe. */
final class KeyServiceProcess implements AutoCloseable {
  private static final String BINARY_PROPERTY = "cipherlane.keyservice.binary";
  private static final String POLICY =
      """
      version: 1
      lease: {expires_in: 1h}
      topics:
        - topics: ["bench-*"]
          mode: encrypt
      rotation:
        - scopes: ["bench-rotated-*"]
          records: 1
      grants:
        - principals: ["spiffe://dev.cipherlane/producer"]
          actions: [encrypt]
          topics: ["bench-renewed-*", "bench-rotated-*"]
          lease: {expires_in: 10s, refresh_in: 1s}
        - principals: ["spiffe://dev.cipherlane/producer"]
          actions: [encrypt]
          topics: ["bench-*"]
        - principals: ["spiffe://dev.cipherlane/consumer"]
          actions: [decrypt]
          topics: ["bench-*"]
      """;

  private final Process process;
  private final JsonObject ready;

  private KeyServiceProcess(Process process, JsonObject ready) {
    this.process = process;
    this.ready = ready;
  }

  static KeyServiceProcess start(Path folder) throws IOException {
    Path policy = Files.writeString(folder.resolve("policy.yaml"), POLICY);
    Process process =
        new ProcessBuilder(
                System.getProperty(BINARY_PROPERTY),
                "dev",
                "--dir",
                folder.resolve("keyservice").toString(),
                "--policy",
                policy.toString(),
                "--json",
                "--until-stdin-closes")
            .redirectError(folder.resolve("keyservice.log").toFile())
            .start();
    var output =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    String line = output.readLine();
    if (line == null) {
      throw new IOException(
          "the key service did not start: " + Files.readString(folder.resolve("keyservice.log")));
    }
    return new KeyServiceProcess(process, JsonParser.parseString(line).getAsJsonObject());
  }

  /** The settings of a client: {@code producer} or {@code consumer}. */
  Map<String, String> settings(String name) {
    JsonObject client = ready.getAsJsonObject("principals").getAsJsonObject(name);
    return Map.of(
        // A machine that measures is busy: its key service may take its time.
        "cipherlane.keyservice.connect.timeout.ms", "60000",
        "cipherlane.keyservice.request.timeout.ms", "60000",
        "cipherlane.keys.deadline.ms", "120000",
        "cipherlane.keyservice.urls", ready.get("url").getAsString(),
        "cipherlane.keyservice.tls.ca", ready.get("ca").getAsString(),
        "cipherlane.keyservice.tls.certificate", client.get("certificate").getAsString(),
        "cipherlane.keyservice.tls.key", client.get("key").getAsString());
  }

  @Override
  public void close() throws IOException {
    try {
      process.getOutputStream().close();
      process.waitFor();
    } catch (InterruptedException e) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    }
  }
}
