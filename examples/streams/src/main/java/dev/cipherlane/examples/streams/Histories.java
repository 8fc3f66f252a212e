// A Kafka Streams application that knows nothing of encryption: its interceptors do, which stand in
// its properties, and they encrypt its input, output, repartition and changelog topics.
package dev.cipherlane.examples.streams;

import java.io.FileReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Materialized;

/** Gathers records by their number modulo ten, one longer and longer line for each group. */
public final class Histories {
  private static final int GROUPS = 10;

  private Histories() {}

  /**
   * Runs until it is stopped.
   *
   * @param args properties file, input topic, output topic
   * @throws IOException if the properties cannot be read
   */
  public static void main(String[] args) throws IOException {
    if (args.length != 3) {
      System.err.println("usage: Histories PROPERTIES INPUT OUTPUT");
      System.exit(2);
    }
    KafkaStreams streams = new KafkaStreams(topology(args[1], args[2]), properties(args[0]));
    Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
    streams.start();
  }

  private static Topology topology(String input, String output) {
    StreamsBuilder builder = new StreamsBuilder();
    builder.<String, String>stream(input)
        .groupBy((number, record) -> Integer.toString(Integer.parseInt(number) % GROUPS))
        .reduce((all, record) -> all + "|" + record, Materialized.as("histories"))
        .toStream()
        .to(output);
    return builder.build();
  }

  private static Properties properties(String file) throws IOException {
    Properties properties = new Properties();
    try (var reader = new FileReader(file, StandardCharsets.UTF_8)) {
      properties.load(reader);
    }
    properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    return properties;
  }
}
