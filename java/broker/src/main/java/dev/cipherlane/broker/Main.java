package dev.cipherlane.broker;

import com.fasterxml.jackson.core.json.JsonWriteFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import net.sourceforge.argparse4j.inf.ArgumentParserException;
import net.sourceforge.argparse4j.internal.HelpScreenException;
import org.apache.logging.log4j.LogManager;

/**
 * The program: reads the options, starts the broker, says so in one line of JSON, and stops it when
 * told to. How the broker is set up is in {@link Settings}, how it runs in {@link Broker}.
 */
public final class Main {
  private static final int FAILED = 1;
  private static final int BAD_OPTION = 2;

  private Main() {}

  /**
   * Runs a broker until the process is told to end.
   *
   * @param args the options; {@code --help} explains them
   */
  public static void main(String[] args) {
    PrintStream stdout = System.out;
    try {
      run(Options.parse(args), stdout);
    } catch (HelpScreenException e) {
      System.exit(0);
    } catch (ArgumentParserException e) {
      e.getParser().handleError(e);
      System.exit(BAD_OPTION);
    } catch (Exception e) {
      System.err.println("cipherlane-broker: " + e.getMessage());
      e.printStackTrace();
      System.exit(FAILED);
    }
  }

  private static void run(Options options, PrintStream stdout) throws Exception {
    // Standard output is for the one line that other programs read; whatever a library prints goes
    // elsewhere.
    System.setOut(System.err);
    WorkFolder folder = WorkFolder.open(options);
    sendLogsTo(folder.logFile());
    Broker broker = new Broker(folder, options);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(broker, folder), "stop"));
    if (options.untilStdinCloses()) {
      exitWhenClosed(System.in);
    }
    broker.start();
    stdout.println(readyLine(broker, folder));
    stdout.flush();
    broker.awaitEnd();
    System.exit(FAILED); // reached only if the broker ended by itself; its log says why
  }

  /** Must come before the first logger is made. */
  private static void sendLogsTo(Path file) {
    System.setProperty("cipherlane.broker.log", file.toString());
    System.setProperty("log4j2.configurationFile", "classpath:broker-log4j2.xml");
  }

  private static String readyLine(Broker broker, WorkFolder folder) throws IOException {
    Map<String, Object> line = new LinkedHashMap<>();
    line.put("bootstrap", broker.bootstrap());
    line.put("pid", ProcessHandle.current().pid());
    line.put("dir", folder.path().toString());
    line.put("log_dir", folder.logDir().toString());
    // ASCII only: the reader need not know this process's character set.
    return JsonMapper.builder()
        .enable(JsonWriteFeature.ESCAPE_NON_ASCII)
        .build()
        .writeValueAsString(line);
  }

  private static void exitWhenClosed(InputStream in) {
    Thread thread = new Thread(() -> readToEnd(in), "until-stdin-closes");
    thread.setDaemon(true);
    thread.start();
  }

  private static void readToEnd(InputStream in) {
    try {
      in.transferTo(OutputStream.nullOutputStream());
    } catch (IOException e) {
      System.err.println("cipherlane-broker: standard input broke, stopping: " + e.getMessage());
    }
    System.exit(0);
  }

  private static void stop(Broker broker, WorkFolder folder) {
    broker.stop();
    LogManager.shutdown();
    folder.close();
  }
}
