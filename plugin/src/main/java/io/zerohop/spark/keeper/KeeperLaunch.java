package io.zerohop.spark.keeper;

import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The command line of a keeper's process, as an executor or the daemon of a node starts it. Needs
 * no Spark.
 */
public final class KeeperLaunch {
  /** By its name: the daemon has no Spark to load it with. */
  private static final String MAIN = "io.zerohop.spark.keeper.KeeperProcess";

  /** An executor's own: a debugger's port, an agent. */
  private static final Set<String> JVM_OPTIONS =
      Set.of("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS");

  /** Together what {@code PoolSizing} promises to the keeper. */
  private static final List<String> MEMORY =
      List.of(
          "-Xmx64m",
          "-Xss512k",
          "-XX:MaxMetaspaceSize=96m",
          "-XX:ReservedCodeCacheSize=32m",
          "-XX:MaxDirectMemorySize=48m");

  /**
   * Classes of objects that a reply of the driver may have. Whoever starts a keeper names its
   * driver, and Spark takes objects of every class from it.
   */
  private static final String SERIAL_FILTER =
      "-Djdk.serialFilter=maxdepth=100;maxarray=10000000;java.base/*;scala.**;"
          + "org.apache.spark.**;io.zerohop.**;!*";

  private static final List<String> SET_SID = List.of("/usr/bin/setsid", "/bin/setsid");

  private KeeperLaunch() {}

  /**
   * Returns a process with a session of its own, which reads its orders from its standard input.
   *
   * @param share what the daemon gives it; empty if an executor starts it
   */
  public static ProcessBuilder process(final String classPath, final List<String> share) {
    final List<String> command = new ArrayList<>();
    SET_SID.stream()
        .filter(path -> Files.isExecutable(Path.of(path)))
        .limit(1)
        .forEach(command::add);
    command.addAll(java());
    command.add(SERIAL_FILTER);
    command.addAll(List.of("-cp", classPath, MAIN));
    command.addAll(share);
    return process(command).redirectErrorStream(true);
  }

  /** Returns a process of a keeper, which ends with it and writes to the same log. */
  static ProcessBuilder copier(final String classPath, final String main) {
    final List<String> command = new ArrayList<>(java());
    command.addAll(List.of("-cp", classPath, main));
    return process(command)
        .redirectOutput(ProcessBuilder.Redirect.INHERIT)
        .redirectError(ProcessBuilder.Redirect.INHERIT);
  }

  private static List<String> java() {
    final List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(MEMORY);
    command.addAll(List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"));
    // Without the threads that such an error ends it would hold memory and not serve it.
    command.add("-XX:+ExitOnOutOfMemoryError");
    return command;
  }

  private static ProcessBuilder process(final List<String> command) {
    final ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().keySet().removeAll(JVM_OPTIONS);
    return builder;
  }

  /**
   * Returns what this process has, and first the jar of this class: Spark may have loaded it
   * itself. Links are followed: those in a container's folder go with the container.
   */
  static String classPath() {
    final URI own =
        URI.create(
            KeeperLaunch.class.getProtectionDomain().getCodeSource().getLocation().toString());
    return Stream.concat(
            Stream.of(Path.of(own).toString()),
            Stream.of(System.getProperty("java.class.path").split(File.pathSeparator)))
        .flatMap(KeeperLaunch::real)
        .distinct()
        .collect(Collectors.joining(File.pathSeparator));
  }

  /** Nothing if it is not there: others could put something in its place later. */
  private static Stream<String> real(final String entry) {
    try {
      return Stream.of(Path.of(entry).toRealPath().toString());
    } catch (final IOException e) {
      return Stream.empty();
    }
  }
}
