package dev.cipherlane.broker;

import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import net.sourceforge.argparse4j.ArgumentParsers;
import net.sourceforge.argparse4j.impl.Arguments;
import net.sourceforge.argparse4j.inf.Argument;
import net.sourceforge.argparse4j.inf.ArgumentParser;
import net.sourceforge.argparse4j.inf.ArgumentParserException;
import net.sourceforge.argparse4j.inf.ArgumentType;
import net.sourceforge.argparse4j.inf.Namespace;
import org.apache.kafka.common.errors.InvalidTopicException;
import org.apache.kafka.common.internals.Topic;

/**
 * The options of the command line, checked. The class knows how to read them, not what they do.
 *
 * @param dir the folder to use and keep; if empty, a temporary one
 * @param keep whether to keep a temporary folder
 * @param port of the broker, or 0 for a free one
 * @param autoCreate whether the broker creates topics that clients ask for
 * @param untilStdinCloses whether to stop at the end of standard input
 * @param topics to create, name to number of partitions
 * @param set more broker settings, name to value
 * @param listeners beside the one in plaintext
 * @param cluster number of brokers
 * @param member which one of a cluster this process is; empty if it is none
 */
record Options(
    Optional<Path> dir,
    boolean keep,
    int port,
    boolean autoCreate,
    boolean untilStdinCloses,
    Map<String, Integer> topics,
    Map<String, String> set,
    List<Listener> listeners,
    int cluster,
    Optional<Member> member) {
  static final int MAX_PARTITIONS = 1000;
  static final int MAX_CLUSTER = 9;

  private static final String DESCRIPTION =
      """
      Starts a real Kafka broker (KRaft, one process), or a cluster of them, on free ports of 127.0.0.1, for tests, \
      demos and benchmarks. When it is ready it prints one line of JSON with the address for clients (bootstrap), its \
      process id, its folder and the folder of the stored records (log_dir); for a cluster also the same of each node. \
      Warnings go to standard error, everything else to broker.log in its folder.""";
  private static final String EPILOG =
      """
      Stop it with Ctrl-C or SIGTERM. Exit codes: 0 standard input closed, 1 the broker failed, 2 bad option, 130 or \
      143 stopped by a signal. A small and quick one: java -Xmx512m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -jar \
      cipherlane-broker.jar --topics orders:3""";

  static Options parse(String[] args) throws ArgumentParserException {
    ArgumentParser parser = parser();
    Namespace given = parser.parseArgs(args);
    return new Options(
        Optional.ofNullable(given.<Path>get("dir")),
        given.getBoolean("keep"),
        given.getInt("port"),
        given.getBoolean("auto_create"),
        given.getBoolean("until_stdin_closes"),
        merge(parser, "--topics", given.getList("topics")),
        merge(parser, "--set", given.getList("set")),
        Optional.ofNullable(given.<Listener>getList("listener")).orElse(List.of()),
        cluster(parser, given),
        Optional.ofNullable(given.<Member>get("member")));
  }

  private static int cluster(ArgumentParser parser, Namespace given)
      throws ArgumentParserException {
    int cluster = given.getInt("cluster");
    if (cluster > 1 && given.getInt("port") != 0) {
      throw new ArgumentParserException("--port is for one broker, not for a --cluster", parser);
    }
    return cluster;
  }

  private static ArgumentParser parser() {
    ArgumentParser parser = ArgumentParsers.newArgumentParser("cipherlane-broker");
    parser.description(DESCRIPTION).epilog(EPILOG);
    parser
        .addArgument("--topics")
        .metavar("NAME:PARTITIONS[,...]")
        .type(Options::topics)
        .action(Arguments.append())
        .help("create these topics before saying that it is ready");
    parser
        .addArgument("--set")
        .metavar("KEY=VALUE")
        .type(Options::setting)
        .action(Arguments.append())
        .help(
            "any other broker setting, for example log.segment.bytes=1048576; {node} in a value stands for the id of"
                + " the node; may be repeated");
    parser
        .addArgument("--cluster")
        .metavar("N")
        .type((p, arg, value) -> number(p, arg, value, MAX_CLUSTER))
        .setDefault(1)
        .help(
            "N brokers that are controllers too, each a process that may be killed and paused; topics have N copies"
                + " and need N-1 (min.insync.replicas). With --until-stdin-closes a line 'start ID' starts one again"
                + " and prints its line of JSON");
    parser
        .addArgument("--listener")
        .metavar("NAME:PROTOCOL[:PORT]")
        .type(as(Listener::parse))
        .action(Arguments.append())
        .help(
            "one more listener, for example TLS:SSL, on a free port that the line of JSON has in listeners; set it up"
                + " with --set listener.name.tls.ssl.…; CONTROLLER:SSL is the controllers' own; may be repeated");
    parser.addArgument("--member").type(as(Member::parse)).help(Arguments.SUPPRESS);
    flag(
        parser,
        "--auto-create",
        "let clients create topics by using them (off: an unknown topic is an error)");
    parser
        .addArgument("--port")
        .type(Options::port)
        .setDefault(0)
        .help("port for clients, for example to restart on the same one (default: a free one)");
    parser
        .addArgument("--dir")
        .type(Options::folder)
        .help(
            "use this folder, with what an earlier run left in it, and keep it (default: a temporary one)");
    flag(parser, "--keep", "keep the temporary folder");
    flag(
        parser,
        "--until-stdin-closes",
        "stop when standard input ends, so that the broker never outlives the program that started it");
    return parser;
  }

  private static void flag(ArgumentParser parser, String name, String help) {
    parser.addArgument(name).action(Arguments.storeTrue()).help(help);
  }

  /** Makes a type of an option of what reads its text. */
  private static <T> ArgumentType<T> as(Function<String, T> parse) {
    return (parser, arg, value) -> {
      try {
        return parse.apply(value);
      } catch (IllegalArgumentException e) {
        throw bad(parser, arg, value, e.getMessage());
      }
    };
  }

  private static int port(ArgumentParser parser, Argument arg, String value)
      throws ArgumentParserException {
    return number(parser, arg, value, 65535);
  }

  private static Path folder(ArgumentParser parser, Argument arg, String value)
      throws ArgumentParserException {
    if (value.isBlank() || value.contains(",")) {
      throw bad(
          parser,
          arg,
          value,
          "must not be blank or have a comma, at which Kafka splits lists of folders");
    }
    return Path.of(value).toAbsolutePath().normalize();
  }

  private static Map<String, Integer> topics(ArgumentParser parser, Argument arg, String value)
      throws ArgumentParserException {
    Map<String, Integer> topics = new LinkedHashMap<>();
    for (String topic : value.split(",", -1)) {
      String[] parts = topic.split(":", -1);
      if (parts.length != 2) {
        throw bad(parser, arg, topic, "is not NAME:PARTITIONS");
      }
      checkTopicName(parser, arg, parts[0]);
      if (topics.put(parts[0], number(parser, arg, parts[1], MAX_PARTITIONS)) != null) {
        throw bad(parser, arg, parts[0], "is given twice");
      }
    }
    return topics;
  }

  private static void checkTopicName(ArgumentParser parser, Argument arg, String name)
      throws ArgumentParserException {
    try {
      Topic.validate(name);
    } catch (InvalidTopicException e) {
      throw bad(parser, arg, name, "is not the name of a topic: " + e.getMessage());
    }
  }

  private static Map<String, String> setting(ArgumentParser parser, Argument arg, String value)
      throws ArgumentParserException {
    int equals = value.indexOf('=');
    if (equals < 1) {
      throw bad(parser, arg, value, "is not KEY=VALUE");
    }
    String key = value.substring(0, equals).trim();
    if (Settings.OWN.contains(key)) {
      throw bad(parser, arg, key, "is set by this program");
    }
    return Map.of(key, value.substring(equals + 1));
  }

  private static int number(ArgumentParser parser, Argument arg, String value, int max)
      throws ArgumentParserException {
    int number = value.matches("\\d{1,9}") ? Integer.parseInt(value) : 0;
    if (number < 1 || number > max) {
      throw bad(parser, arg, value, "is not a number from 1 to " + max);
    }
    return number;
  }

  /**
   * Joins the values of an option that was given more than once; naming the same thing twice is an
   * error.
   */
  private static <V> Map<String, V> merge(
      ArgumentParser parser, String option, List<Map<String, V>> values)
      throws ArgumentParserException {
    Map<String, V> merged = new LinkedHashMap<>();
    for (Map<String, V> value : values == null ? List.<Map<String, V>>of() : values) {
      for (Map.Entry<String, V> entry : value.entrySet()) {
        if (merged.put(entry.getKey(), entry.getValue()) != null) {
          throw new ArgumentParserException(
              "argument " + option + ": '" + entry.getKey() + "' is given twice", parser);
        }
      }
    }
    return merged;
  }

  private static ArgumentParserException bad(
      ArgumentParser parser, Argument arg, String value, String why) {
    return new ArgumentParserException("'" + value + "' " + why, parser, arg);
  }
}
