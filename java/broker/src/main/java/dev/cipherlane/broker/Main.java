package dev.cipherlane.broker;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import net.sourceforge.argparse4j.inf.ArgumentParserException;
import net.sourceforge.argparse4j.internal.HelpScreenException;
import org.apache.logging.log4j.LogManager;

/**
 * The program: reads the options, starts a broker or a cluster, says so in one line of JSON, and
 * stops it when told to. How a broker is set up is in {@link Settings}, how it runs in {@link
 * Broker}; a cluster is in {@link Cluster}.
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
    Service service =
        options.cluster() > 1 ? new Cluster(folder, options, stdout) : new Broker(folder, options);
    Runtime.getRuntime().addShutdownHook(new Thread(() -> stop(service, folder), "stop"));
    if (options.untilStdinCloses()) {
      exitWhenClosed(System.in, service);
    }
    stdout.println(service.start().line());
    stdout.flush();
    service.awaitEnd();
    System.exit(FAILED); // reached only if the broker ended by itself; its log says why
  }

  /** Must come before the first logger is made. */
  private static void sendLogsTo(Path file) {
    System.setProperty("cipherlane.broker.log", file.toString());
    System.setProperty("log4j2.configurationFile", "classpath:broker-log4j2.xml");
  }

  private static void exitWhenClosed(InputStream in, Service service) {
    Thread thread = new Thread(() -> readToEnd(in, service), "until-stdin-closes");
    thread.setDaemon(true);
    thread.start();
  }

  private static void readToEnd(InputStream in, Service service) {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(in, StandardCharsets.US_ASCII))) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        service.obey(line);
      }
    } catch (IOException e) {
      System.err.println("cipherlane-broker: standard input broke, stopping: " + e.getMessage());
    }
    System.exit(0);
  }

  private static void stop(Service service, WorkFolder folder) {
    service.close();
    LogManager.shutdown();
    folder.close();
  }
}
