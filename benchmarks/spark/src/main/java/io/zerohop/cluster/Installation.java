package io.zerohop.cluster;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/**
 * What the build has made, where the build puts it.
 *
 * @param sparkHome a folder that Spark can be started from
 * @param applicationJar the jar of this module
 * @param applicationJars the libraries that it needs and Spark does not bring
 * @param zerohopJar the plugin
 */
public record Installation(
    SparkHome sparkHome, Path applicationJar, List<Path> applicationJars, Path zerohopJar) {

  /**
   * Finds the parts.
   *
   * @param project the folder of the parent project, built
   * @throws ClusterException if something is not there or not there once
   */
  public static Installation in(final Path project) {
    final Path target = project.resolve("benchmarks/spark/target");
    return new Installation(
        new SparkHome(target.resolve("spark-home")),
        only(target, "zerohop-benchmarks-spark-"),
        jars(target.resolve("application-jars"), ""),
        only(project.resolve("plugin/target"), "zerohop-spark-"));
  }

  private static Path only(final Path folder, final String prefix) {
    final List<Path> found = jars(folder, prefix);
    if (found.size() != 1) {
      throw new ClusterException(
          "one "
              + prefix
              + "*.jar is needed in "
              + folder
              + " and these are there: "
              + found
              + "; build with `mvn -B -q -DskipTests clean package`");
    }
    return found.get(0);
  }

  private static List<Path> jars(final Path folder, final String prefix) {
    try (Stream<Path> files = Files.list(folder)) {
      return files
          .filter(file -> file.getFileName().toString().startsWith(prefix))
          .filter(file -> file.toString().endsWith(".jar"))
          .filter(file -> !file.toString().matches(".*-(tests|sources|javadoc)\\.jar"))
          .map(Path::toAbsolutePath)
          .sorted()
          .toList();
    } catch (final IOException e) {
      throw new UncheckedIOException("listing " + folder, e);
    }
  }
}
