package dev.cipherlane.testing;

import com.google.gson.JsonParser;
import java.io.File;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourceType;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * A key service that gives certificates of 15 seconds, which are renewed every ten, or of another
 * life, and a broker whose listeners for clients, brokers and controllers are all mutual TLS with
 * such a certificate. Whoever uses it has the module {@code transport} on its class path. Not
 * thread-safe.
 *
 * @param folder of the test, for tokens and files of the key service
 * @param service where every name of {@link #DOMAIN} may have a certificate, and all topics are
 *     clear
 * @param broker with ACLs for the principals of certificates
 */
public record TlsPlatform(Path folder, KeyServiceProcess service, BrokerProcess broker)
    implements AutoCloseable {
  /** What principals begin with. */
  public static final String DOMAIN = "spiffe://dev.cipherlane/";

  private static final String ENGINE = "dev.cipherlane.transport.CipherlaneSslEngineFactory";
  private static final String POLICY =
      """
      version: 1
      topics: [{topics: ["*"], mode: clear}]
      grants:
        - {principals: ["spiffe://dev.cipherlane/broker"], actions: [certificate], lifetime: %1$s, server_names: [127.0.0.1]}
        - {principals: ["spiffe://dev.cipherlane/**"], actions: [certificate], lifetime: %1$s}
        - {principals: ["spiffe://dev.cipherlane/operator"], actions: [admin]}
      """;

  /**
   * Starts both.
   *
   * @param folder for their files
   * @return both, which answer
   * @throws IOException if one does not start; then nothing is left running
   */
  public static TlsPlatform start(Path folder) throws IOException {
    return start(folder, "15s");
  }

  /**
   * Starts both.
   *
   * @param folder for their files
   * @param lifetime of all certificates, such as {@code 1h}
   * @param options more of the broker's
   * @return both, which answer
   * @throws IOException if one does not start; then nothing is left running
   */
  public static TlsPlatform start(Path folder, String lifetime, String... options)
      throws IOException {
    KeyServiceProcess service =
        KeyServiceProcess.start(
            folder,
            POLICY.formatted(lifetime),
            "certificates: {ca: embedded, bootstrap_tokens: true}");
    try {
      return new TlsPlatform(folder, service, broker(folder, service, List.of(options)));
    } catch (IOException e) {
      service.close();
      throw e;
    }
  }

  /**
   * Lets a principal write and read the topic {@code claims}.
   *
   * @param name behind {@link #DOMAIN}
   * @return this
   * @throws Exception if the broker does not take it
   */
  public TlsPlatform allow(String name) throws Exception {
    for (AclOperation operation :
        List.of(AclOperation.WRITE, AclOperation.READ, AclOperation.DESCRIBE)) {
      allow(name, ResourceType.TOPIC, "claims", operation);
    }
    return this;
  }

  /**
   * Lets a principal do whatever clients do: with every topic, group and transactional id.
   *
   * @param name behind {@link #DOMAIN}
   * @return this
   * @throws Exception if the broker does not take it
   */
  public TlsPlatform allowAll(String name) throws Exception {
    for (ResourceType type :
        List.of(ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)) {
      allow(name, type, "*", AclOperation.ALL);
    }
    return this;
  }

  private void allow(String name, ResourceType type, String what, AclOperation operation)
      throws Exception {
    // In plaintext, as ANONYMOUS: what is tested here are the others.
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker.bootstrap()))) {
      admin
          .createAcls(
              List.of(
                  new AclBinding(
                      new ResourcePattern(type, what, PatternType.LITERAL),
                      new AccessControlEntry(
                          "User:" + DOMAIN + name, "*", operation, AclPermissionType.ALLOW))))
          .all()
          .get();
    }
  }

  /**
   * Changes a setting of the broker, and waits until it has taken it over, before which it may
   * refuse another change.
   *
   * @param admin a client of the broker
   * @param name of the setting
   * @param value the new one
   * @throws Exception if the broker refuses it
   */
  public static void alter(Admin admin, String name, String value) throws Exception {
    var broker = new ConfigResource(ConfigResource.Type.BROKER, "1");
    var change = new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET);
    admin.incrementalAlterConfigs(Map.of(broker, List.of(change))).all().get();
    ConfigEntry now;
    do {
      now = admin.describeConfigs(List.of(broker)).all().get().get(broker).get(name);
    } while (now == null || !value.equals(now.value()));
  }

  private static BrokerProcess broker(Path folder, KeyServiceProcess service, List<String> more)
      throws IOException {
    Map<String, Object> settings = identity(folder, service, "broker");
    settings.put("ssl.engine.factory.class", ENGINE);
    settings.put("cipherlane.tls.server.names", "127.0.0.1");
    settings.put("inter.broker.listener.name", "TLS");
    settings.put("principal.builder.class", "dev.cipherlane.transport.SpiffePrincipalBuilder");
    settings.put(
        "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
    settings.put("super.users", "User:" + DOMAIN + "broker;User:ANONYMOUS");
    List<String> options = new ArrayList<>(more);
    options.addAll(List.of("--listener", "TLS:SSL", "--listener", "CONTROLLER:SSL"));
    options.addAll(List.of("--topics", "claims:1"));
    settings.forEach((name, value) -> options.addAll(List.of("--set", name + "=" + value)));
    return BrokerProcess.start(
        plugins(), List.of("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"), options);
  }

  /** What this test has of Cipherlane and what that needs; the broker has Kafka itself. */
  private static List<Path> plugins() {
    return Arrays.stream(System.getProperty("java.class.path").split(File.pathSeparator))
        .filter(
            entry ->
                entry.contains("gson")
                    || entry.contains("netty") // for BoringSSL
                    || entry.endsWith("core/target/classes")
                    || entry.contains("cipherlane-transport")
                    || entry.endsWith("transport/target/classes")
                    || (entry.contains("cipherlane-core") && !entry.contains("tests")))
        .map(Path::of)
        .toList();
  }

  /** Who a process is: by a token, then by the certificate. */
  private static Map<String, Object> identity(Path folder, KeyServiceProcess service, String name)
      throws IOException {
    Map<String, Object> settings = new HashMap<>(service.settings("producer"));
    settings.remove("cipherlane.keyservice.tls.certificate");
    settings.remove("cipherlane.keyservice.tls.key");
    Path file = Files.createTempFile(folder, tokens(name), "");
    Files.writeString(file, token(service, name));
    settings.put("cipherlane.identity.token.file", file.toString());
    return settings;
  }

  private static String token(KeyServiceProcess service, String name) throws IOException {
    String json = service.operate("token", "create", DOMAIN + name, "--json");
    return JsonParser.parseString(json).getAsJsonObject().get("token").getAsString();
  }

  /** How the names of a principal's files begin. */
  private static String tokens(String name) {
    return "token-" + name.replace('/', '-') + "-";
  }

  /**
   * Whoever is this principal may begin anew: a token serves once.
   *
   * @param name behind {@link #DOMAIN}
   * @throws IOException if there is no token
   */
  public void newTokens(String name) throws IOException {
    try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, tokens(name) + "*")) {
      for (Path file : files) {
        Files.writeString(file, token(service, name));
      }
    }
  }

  /**
   * Counts the certificates that a principal has been given.
   *
   * @param name behind {@link #DOMAIN}
   * @return how many
   * @throws IOException if the audit log cannot be read
   */
  public long issued(String name) throws IOException {
    return Files.readAllLines(service.auditFile()).stream()
        .filter(line -> line.contains("\"" + DOMAIN + name + "\""))
        .filter(line -> line.contains("\"serial\""))
        .count();
  }

  /**
   * Gives the settings of a client of any kind.
   *
   * @param name behind {@link #DOMAIN}: a new token of it stands in a file
   * @param more names and values in turn
   * @return the settings
   * @throws IOException if there is no token
   */
  public Map<String, Object> client(String name, Object... more) throws IOException {
    return over(identity(folder, service, name), more);
  }

  /**
   * Gives the settings of a client whose identity is given.
   *
   * @param identity the settings that say who it is
   * @param more names and values in turn
   * @return all settings
   */
  public Map<String, Object> over(Map<String, Object> identity, Object... more) {
    Map<String, Object> settings = new HashMap<>(identity);
    settings.put("bootstrap.servers", broker.bootstrap("TLS"));
    settings.put("security.protocol", "SSL");
    settings.put("ssl.engine.factory.class", ENGINE);
    settings.put("key.serializer", ByteArraySerializer.class);
    settings.put("value.serializer", ByteArraySerializer.class);
    settings.put("key.deserializer", ByteArrayDeserializer.class);
    settings.put("value.deserializer", ByteArrayDeserializer.class);
    settings.put("max.block.ms", "60000");
    for (int i = 0; i < more.length; i += 2) {
      settings.put((String) more[i], more[i + 1]);
    }
    return settings;
  }

  @Override
  public void close() throws IOException {
    try (broker;
        service) {
      // Stopped in any case.
    }
  }
}
