package io.zerohop.cluster;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.spark.launcher.JavaModuleOptions;

/**
 * A folder with {@code jars/}, {@code conf/} and {@code RELEASE}, which is all that Spark needs of
 * a distribution, and the command line that starts Spark from it.
 *
 * <p>The build lays one out in {@code benchmarks/spark/target/spark-home}. Immutable and safe to
 * share between threads.
 */
public final class SparkHome {
  /** The Scala version of the jars, which Spark's launcher cannot find out by itself. */
  public static final String SCALA_VERSION = "2.13";

  private static final String SUBMIT_CLASS = "org.apache.spark.deploy.SparkSubmit";

  private final Path root;

  /**
   * Takes the folder as it is.
   *
   * @throws ClusterException if it holds no {@code jars} folder
   */
  public SparkHome(final Path root) {
    this.root = root.toAbsolutePath();
    if (!Files.isDirectory(jars())) {
      throw new ClusterException(
          "no Spark in " + this.root + ": build it with `mvn -B -q -DskipTests package`");
    }
  }

  /** The folder itself, absolute. */
  public Path root() {
    return root;
  }

  /** Where Spark's jars lie. */
  public Path jars() {
    return root.resolve("jars");
  }

  /**
   * Makes a home of its own for one run, which shares these jars. Workers of {@code local-cluster}
   * write under their home, so runs at the same time must not share one.
   *
   * @param directory where to make it; must not exist
   */
  public SparkHome linkedAt(final Path directory) throws IOException {
    Files.createDirectories(directory);
    for (final String shared : List.of("jars", "conf", "RELEASE")) {
      Files.createSymbolicLink(directory.resolve(shared), root.resolve(shared).toRealPath());
    }
    return new SparkHome(directory);
  }

  /**
   * The command line that submits an application and stays for as long as its driver runs: Spark's
   * own script if the home is a whole distribution.
   */
  public List<String> command(final Submission submission) {
    final List<String> words =
        new ArrayList<>(
            List.of("--master", submission.master(), "--class", submission.mainClass()));
    final Map<String, String> conf = new TreeMap<>(submission.conf());
    if (!submission.classPath().isEmpty()) {
      final String extra = joined(submission.classPath(), File.pathSeparator);
      conf.put("spark.driver.extraClassPath", extra);
      conf.putIfAbsent("spark.executor.extraClassPath", extra);
    }
    conf.forEach((key, value) -> words.addAll(List.of("--conf", key + "=" + value)));
    if (!submission.jars().isEmpty()) {
      words.addAll(List.of("--jars", joined(submission.jars(), ",")));
    }
    words.add(submission.applicationJar().toAbsolutePath().toString());
    words.addAll(submission.arguments());
    final Path script = root.resolve("bin").resolve("spark-submit");
    if (Files.isExecutable(script)) {
      words.addAll(0, List.of(script.toString(), "--driver-memory", submission.driverMemory()));
      return words;
    }
    return javaCommand(
        List.of("-Xmx" + submission.driverMemory()), submission.classPath(), SUBMIT_CLASS, words);
  }

  /**
   * The command line that starts a program with Spark's jars and what they need of Java.
   *
   * @param options of the JVM
   * @param classPath what comes before Spark's jars
   */
  public List<String> javaCommand(
      final List<String> options,
      final List<Path> classPath,
      final String mainClass,
      final List<String> arguments) {
    final List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of(JavaModuleOptions.defaultModuleOptions().trim().split("\\s+")));
    command.addAll(options);
    command.addAll(List.of("-cp", driverClassPath(classPath), mainClass));
    command.addAll(arguments);
    return command;
  }

  /** The variables that Spark's launcher and the workers of {@code local-cluster} look for. */
  public Map<String, String> environment() {
    return Map.of(
        "SPARK_HOME", root.toString(),
        "SPARK_CONF_DIR", root.resolve("conf").toString(),
        "SPARK_SCALA_VERSION", SCALA_VERSION,
        "SPARK_LOCAL_IP", "127.0.0.1",
        "JAVA_HOME", System.getProperty("java.home"));
  }

  private String driverClassPath(final List<Path> extra) {
    final List<Path> entries = new ArrayList<>(extra);
    entries.add(root.resolve("conf"));
    entries.add(jars().resolve("*"));
    return joined(entries, File.pathSeparator);
  }

  private static String joined(final List<Path> paths, final String separator) {
    return paths.stream()
        .map(path -> path.toAbsolutePath().toString())
        .collect(Collectors.joining(separator));
  }
}
