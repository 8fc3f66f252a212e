package dev.cipherlane.keyservice;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsParameters;
import com.sun.net.httpserver.HttpsServer;
import dev.cipherlane.TestKeys;
import dev.cipherlane.identity.TlsFiles;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;

/** A TLS server in this process that answers whatever a test wants. */
public final class HostileKeyService implements AutoCloseable {
  /** An answer. */
  public record Reply(int status, String contentType, String body, Map<String, String> headers) {
    public static Reply json(int status, String contentType, String body) {
      return new Reply(status, contentType, body, Map.of());
    }

    public static Reply ok(JsonObject body) {
      return json(200, "application/json", body.toString());
    }

    public static Reply problem(int status, String code) {
      JsonObject problem = new JsonObject();
      problem.addProperty("status", status);
      problem.addProperty("code", code);
      problem.addProperty("detail", "said by a test");
      return json(status, "application/problem+json", problem.toString());
    }
  }

  /** Answers one request; what it throws hangs up. */
  public interface Handler {
    Reply answer(String path, JsonObject request) throws IOException, InterruptedException;
  }

  private final HttpsServer server;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final TlsFiles files;

  /** What it answers. */
  public volatile Handler handler = (path, request) -> Reply.problem(503, "internal");

  /** What it was asked, path and body. */
  public final List<String> requests = new CopyOnWriteArrayList<>();

  private final Set<InetSocketAddress> clients = ConcurrentHashMap.newKeySet();

  private HostileKeyService(HttpsServer server, TlsFiles files) {
    this.server = server;
    this.files = files;
  }

  /** Starts one whose certificate fits. */
  public static HostileKeyService start(Path folder) throws IOException {
    return start(folder, "127.0.0.1");
  }

  /** Starts one whose certificate is for the address given. */
  public static HostileKeyService start(Path folder, String certified) throws IOException {
    TestCertificates ca = TestCertificates.create();
    TlsFiles files = ca.files(folder, ca.client("EC"));
    return start(ca.serverContext(ca.server(certified)), files);
  }

  /** Starts one with chosen certificates. */
  public static HostileKeyService start(SSLContext context, TlsFiles files) throws IOException {
    HttpsServer server =
        HttpsServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 64);
    server.setHttpsConfigurator(
        new HttpsConfigurator(context) {
          @Override
          public void configure(HttpsParameters parameters) {
            SSLParameters tls = context.getDefaultSSLParameters();
            tls.setNeedClientAuth(true);
            parameters.setSSLParameters(tls);
          }
        });
    HostileKeyService service = new HostileKeyService(server, files);
    server.createContext("/", service::handle);
    server.setExecutor(service.threads);
    server.start();
    return service;
  }

  private void handle(HttpExchange exchange) throws IOException {
    try (exchange) {
      String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
      String path = exchange.getRequestURI().getPath();
      requests.add(path + " " + body);
      clients.add(exchange.getRemoteAddress());
      Reply reply = handler.answer(path, JsonParser.parseString(body).getAsJsonObject());
      exchange.getResponseHeaders().add("Content-Type", reply.contentType());
      reply.headers().forEach(exchange.getResponseHeaders()::add);
      byte[] bytes = reply.body().getBytes(StandardCharsets.UTF_8);
      exchange.sendResponseHeaders(reply.status(), bytes.length == 0 ? -1 : bytes.length);
      try (OutputStream out = exchange.getResponseBody()) {
        out.write(bytes);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  public String url() {
    return "https://127.0.0.1:" + server.getAddress().getPort();
  }

  public TlsFiles files() {
    return files;
  }

  /** How many connections asked something. */
  public int connections() {
    return clients.size();
  }

  /** The settings of a client. */
  public Map<String, Object> settings() {
    Map<String, Object> settings = new HashMap<>();
    settings.put("cipherlane.keyservice.urls", url());
    settings.put("cipherlane.keyservice.tls.ca", files.ca().toString());
    settings.put("cipherlane.keyservice.tls.certificate", files.certificate().toString());
    settings.put("cipherlane.keyservice.tls.key", files.key().toString());
    settings.put("cipherlane.keyservice.connect.timeout.ms", "3000");
    settings.put("cipherlane.keyservice.request.timeout.ms", "3000");
    settings.put("cipherlane.keys.retry.backoff.ms", "1");
    return settings;
  }

  /** The answer for encryption, as it should be. */
  public static JsonObject encryptionKey(String scope, byte[] key, int expiresIn) {
    JsonObject answer = keyEntry(scope, key, expiresIn);
    answer.addProperty("mode", "encrypt");
    return answer;
  }

  /** The answer for decryption, as it should be, with one key. */
  public static JsonObject decryptionKeys(String scope, byte[] key, int expiresIn) {
    JsonArray keys = new JsonArray();
    keys.add(keyEntry(scope, key, expiresIn));
    JsonObject answer = lease(expiresIn);
    answer.addProperty("plaintext", "reject");
    answer.add("keys", keys);
    return answer;
  }

  private static JsonObject keyEntry(String scope, byte[] key, int expiresIn) {
    JsonObject entry = lease(expiresIn);
    entry.addProperty("scope", scope);
    entry.addProperty("kid", TestKeys.kid(key).toString());
    entry.addProperty("key", Base64.getEncoder().encodeToString(key));
    return entry;
  }

  private static JsonObject lease(int expiresIn) {
    JsonObject lease = new JsonObject();
    lease.addProperty("refresh_in", expiresIn);
    lease.addProperty("expires_in", expiresIn);
    return lease;
  }

  @Override
  public void close() {
    server.stop(0);
    threads.shutdownNow();
  }
}
