package dev.cipherlane.kafka;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.Gson;
import dev.cipherlane.Encryptor;
import dev.cipherlane.testing.BrokerProcess;
import dev.cipherlane.testing.KafkaClients;
import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/** The tools of the Kafka distribution, unchanged, with nothing but configuration. */
@ExtendWith(Cluster.class)
class ConsoleToolsTest {
  // The tools are Java machines of their own, which load everything while the computer may be busy.
  private static final Map<String, Object> PATIENCE =
      Map.of(
          "cipherlane.keyservice.connect.timeout.ms", "30000",
          "cipherlane.keyservice.request.timeout.ms", "30000",
          "cipherlane.keys.deadline.ms", "60000");

  @TempDir Path folder;

  private final String topic = "encrypted." + UUID.randomUUID();
  private final Canaries canaries = new Canaries();

  @AfterEach
  void noCanaryIsStored() throws IOException {
    canaries.assertNoneStored();
  }

  @Test
  void consoleProducerAndConsumer() throws Exception {
    List<String> lines = IntStream.range(0, 20).mapToObj(i -> canaries.text()).toList();
    Result produced = produce("producer", lines);
    assertThat(produced.exitCode()).as(produced.output()).isZero();
    assertEnvelopes(20);

    Result consumed = consume("consumer", 20);
    assertThat(consumed.output().lines().toList()).containsAll(lines);
  }

  @Test
  void consoleProducerWithoutTheRightSendsNothing() throws Exception {
    Result produced = produce("stranger", List.of(canaries.text()));
    assertThat(produced.output()).contains("not-authorized").contains(topic);
  }

  @Test
  void consoleConsumerWithoutTheRightShowsNothing() throws Exception {
    String line = canaries.text();
    produce("producer", List.of(line));
    Result consumed = consume("stranger", 1);
    assertThat(consumed.output()).contains("not-authorized").doesNotContain(line);
  }

  @Test
  void producerPerformance() throws Exception {
    Path payloads = folder.resolve("payloads");
    String line = canaries.text();
    Files.writeString(payloads, line + "\n");
    Result result =
        run(
            "org.apache.kafka.tools.ProducerPerformance",
            "",
            "--topic",
            topic,
            "--num-records",
            "500",
            "--throughput",
            "-1",
            "--payload-file",
            payloads.toString(),
            "--bootstrap-server",
            Cluster.broker().bootstrap(),
            "--command-config",
            properties("producer", EncryptingProducerInterceptor.class));
    assertThat(result.exitCode()).as(result.output()).isZero();
    assertThat(result.output()).contains("500 records sent");
    assertEnvelopes(500);
    assertThat(decrypted(500)).containsOnly(line);
  }

  @Test
  void verifiableProducer() throws Exception {
    Result result = verifiableProducer("partitioner.class=" + EnvelopePartitioner.class.getName());
    assertThat(result.exitCode()).as(result.output()).isZero();
    assertThat(result.output()).contains("\"sent\":100").contains("\"acked\":100");
    assertEnvelopes(100);
    assertThat(decrypted(100))
        .containsExactlyInAnyOrderElementsOf(
            IntStream.range(0, 100).mapToObj(i -> "77." + i).toList());
  }

  @Test
  void verifiableProducerWithoutThePartitionerSendsNothing() throws Exception {
    Result result = verifiableProducer("");
    assertThat(result.exitCode()).isNotZero();
    assertThat(result.output()).contains("EnvelopePartitioner");
  }

  private Result verifiableProducer(String setting) throws Exception {
    return run(
        "org.apache.kafka.tools.VerifiableProducer",
        "",
        "--topic",
        topic,
        "--max-messages",
        "100",
        "--value-prefix",
        "77",
        "--bootstrap-server",
        Cluster.broker().bootstrap(),
        "--command-config",
        properties("producer", EncryptingProducerInterceptor.class, setting));
  }

  private Result produce(String principal, List<String> lines) throws Exception {
    return run(
        "org.apache.kafka.tools.ConsoleProducer",
        String.join("\n", lines) + "\n",
        "--topic",
        topic,
        "--bootstrap-server",
        Cluster.broker().bootstrap(),
        "--command-config",
        properties(principal, EncryptingProducerInterceptor.class));
  }

  private Result consume(String principal, int count) throws Exception {
    return run(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        "",
        "--topic",
        topic,
        "--from-beginning",
        "--max-messages",
        String.valueOf(count),
        "--timeout-ms",
        "120000",
        "--bootstrap-server",
        Cluster.broker().bootstrap(),
        "--command-config",
        properties(principal, DecryptingConsumerInterceptor.class));
  }

  private String properties(String principal, Class<?> interceptor, String... more)
      throws IOException {
    Map<String, Object> settings = new HashMap<>(Cluster.keyService().settings(principal));
    settings.putAll(PATIENCE);
    List<String> lines = new ArrayList<>(List.of(more));
    lines.add("interceptor.classes=" + interceptor.getName());
    settings.forEach((name, value) -> lines.add(name + "=" + value));
    return Files.write(folder.resolve(principal + ".properties"), lines).toString();
  }

  private record Result(int exitCode, String output) {}

  /** Runs a tool of the broker's lib folder, as a user would, with Cipherlane on the class path. */
  private Result run(String tool, String input, String... arguments) throws Exception {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-cp",
                classPath(),
                tool));
    command.addAll(List.of(arguments));
    Path output = folder.resolve("output");
    Process process =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    try (OutputStream keyboard = process.getOutputStream()) {
      keyboard.write(input.getBytes(StandardCharsets.UTF_8));
    }
    if (!process.waitFor(240, TimeUnit.SECONDS)) {
      process.destroyForcibly().waitFor();
      throw new AssertionError(tool + " did not end: " + Files.readString(output));
    }
    return new Result(process.exitValue(), Files.readString(output));
  }

  private static String classPath() throws URISyntaxException {
    Path lib = Path.of(System.getProperty(BrokerProcess.JAR_PROPERTY)).resolveSibling("lib");
    List<String> entries = new ArrayList<>(List.of(lib + "/*"));
    for (Class<?> one : List.of(EncryptingProducerInterceptor.class, Encryptor.class, Gson.class)) {
      entries.add(
          Path.of(one.getProtectionDomain().getCodeSource().getLocation().toURI()).toString());
    }
    return entries.stream().collect(Collectors.joining(File.pathSeparator));
  }

  private void assertEnvelopes(int count) {
    assertThat(Clients.stored(topic, count))
        .hasSize(count)
        .allSatisfy(value -> assertThat(value).startsWith(0xC1, 0x9E, 1, 0));
  }

  private List<String> decrypted(int count) {
    try (KafkaConsumer<byte[], byte[]> consumer = Clients.consumer()) {
      return KafkaClients.read(consumer, topic, count).stream()
          .map(ConsumerRecord::value)
          .map(value -> new String(value, StandardCharsets.UTF_8))
          .toList();
    }
  }
}
