package io.zerohop.spark.keeperdaemon;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.host.AvailableMemory;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Keys;
import io.zerohop.spark.doctor.Report.ReleaseVersion;
import io.zerohop.spark.keeper.DaemonLink;
import io.zerohop.spark.keeper.KeeperShare;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code java -jar zerohop-spark.jar keeper}: the daemon that starts a node's keepers. */
@Command(
    name = "keeper",
    mixinStandardHelpOptions = true,
    versionProvider = ReleaseVersion.class,
    description = {
      "Starts the keepers of this user's applications on this node, so that they outlive the"
          + " containers of executors, and limits them together (docs/keeper.md).",
      "Runs until it gets SIGTERM; keepers go on. Its log, and theirs, goes to standard error and"
          + " output."
    },
    exitCodeListHeading = "Exit status:%n",
    exitCodeList = {
      "143:ended by SIGTERM",
      " 64:the command line is not valid",
      " 70:it cannot serve, such as where another daemon does"
    },
    exitCodeOnInvalidInput = KeeperCommand.INVALID,
    exitCodeOnExecutionException = KeeperCommand.BROKEN)
public final class KeeperCommand implements Callable<Integer> {
  static final int INVALID = 64;
  static final int BROKEN = 70;

  private static final int MAX_COUNT = 10_000;

  @Spec private CommandSpec spec;

  @Option(
      names = "--folder",
      paramLabel = "DIR",
      description =
          "Of this user alone (0700), with the socket: spark.zerohop.keeper.daemon of applications"
              + " (default: /tmp/zerohop-keeper-UID).")
  private @Nullable Path folder;

  @Option(
      names = "--size",
      defaultValue = "auto",
      paramLabel = "SIZE",
      description =
          "Maximum memory that all keepers hold together, such as 64g (default: half of what the"
              + " machine or container has).")
  private String size = "auto";

  @Option(
      names = "--keepers",
      defaultValue = "16",
      paramLabel = "N",
      description = "Maximum number of keepers (default: ${DEFAULT-VALUE}).")
  private int keepers;

  @Option(
      names = "--starts",
      defaultValue = "30",
      paramLabel = "N",
      description = "Maximum starts within a minute (default: ${DEFAULT-VALUE}).")
  private int starts;

  @Option(
      names = "--jars",
      split = ",",
      paramLabel = "DIR",
      description =
          "Start keepers only of class paths in these folders. Anyway they have to belong to this"
              + " user or root, and nobody else may write to them.")
  private List<Path> jars = List.of();

  @Option(
      names = "--socket-dir",
      defaultValue = "",
      paramLabel = "DIR",
      description =
          "spark.zerohop.socket.dir as this process sees it, if in another way than executors;"
              + " "
              + KeeperShare.APPLICATION
              + " stands for the application's id.")
  private String socketDir = "";

  @Option(
      names = "--dir",
      paramLabel = "DIR",
      description =
          "Local directory in which keepers have files of map outputs for which memory has no room"
              + " (default: none, and outputs stay in memory or go).")
  private @Nullable Path dir;

  @Option(
      names = "--files",
      defaultValue = "",
      paramLabel = "SIZE",
      description =
          "Maximum bytes of the files of all keepers together, such as 500g (default: any, but a"
              + " tenth of the file system is left to others). Needs --dir.")
  private String fileSize = "";

  @Override
  public Integer call() throws InterruptedException {
    final PrintWriter log = spec.commandLine().getErr();
    final KeeperDaemon.Limits limits =
        new KeeperDaemon.Limits(
            bytes(), fileBytes(), count("--keepers", keepers), count("--starts", starts));
    final KeeperDaemon.Rules rules = new KeeperDaemon.Rules(realJars(), socketDir, files());
    final Path base = DaemonLink.folder(folder).toAbsolutePath();
    final KeeperDaemon daemon;
    try {
      daemon =
          KeeperDaemon.open(
              base, limits, rules, KeeperDaemon::launch, Clock.system(), line -> say(log, line));
    } catch (final ZerohopException e) {
      say(log, e.message());
      return BROKEN;
    }
    Runtime.getRuntime().addShutdownHook(new Thread(daemon::close, "keeper-daemon-end"));
    say(
        log,
        Message.of(
            "serves at "
                + base
                + ", at most "
                + limits.bytes()
                + " bytes in "
                + keepers
                + " keepers"));
    daemon.awaitEnd();
    return BROKEN; // Unless a signal ends the process.
  }

  private static void say(final PrintWriter log, final Message line) {
    log.println("keeper: " + line.text());
    log.flush();
  }

  private long bytes() {
    if (size.equals("auto")) {
      return Math.min(AvailableMemory.machineTotalBytes(), AvailableMemory.limitBytes()) / 2;
    }
    return size("--size", size, KeeperDaemon.MIN_BYTES);
  }

  private long fileBytes() {
    if (fileSize.isEmpty()) {
      return KeeperShare.UNLIMITED;
    }
    if (dir == null) {
      throw invalid("--files needs --dir");
    }
    return size("--files", fileSize, 0);
  }

  private long size(final String option, final String text, final long min) {
    try {
      final long bytes = Keys.size(text);
      if (bytes >= min) {
        return bytes;
      }
    } catch (final ArithmeticException | IllegalArgumentException e) {
      throw invalid(option + ": " + e.getMessage());
    }
    throw invalid(option + " is " + min + " bytes or more");
  }

  private int count(final String option, final int value) {
    if (value < 1 || value > MAX_COUNT) {
      throw invalid(option + " is 1 to " + MAX_COUNT);
    }
    return value;
  }

  private List<Path> realJars() {
    final List<Path> real = new ArrayList<>();
    for (final Path path : jars) {
      try {
        real.add(path.toRealPath());
      } catch (final IOException e) {
        throw invalid("--jars: there is no " + path);
      }
    }
    return real;
  }

  private String files() {
    if (dir == null) {
      return "";
    }
    if (!Files.isDirectory(dir) || !Files.isWritable(dir)) {
      throw invalid("--dir: " + dir + " is no directory that this user can write to");
    }
    return dir.toAbsolutePath().toString();
  }

  private ParameterException invalid(final String why) {
    return new ParameterException(spec.commandLine(), why);
  }
}
