package io.zerohop.cluster;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * What {@code spark-submit} is asked to run.
 *
 * @param master the master URL, for example {@code local-cluster[2,1,1024]}
 * @param mainClass the application's main class
 * @param applicationJar the jar that holds it
 * @param jars more jars that Spark hands to its executors
 * @param classPath jars put on the class path of driver and executors as {@code extraClassPath}
 *     does; absolute
 * @param driverMemory the driver's heap in the JVM's notation, for example {@code 1g}
 * @param conf Spark's configuration
 * @param arguments the application's arguments
 */
public record Submission(
    String master,
    String mainClass,
    Path applicationJar,
    List<Path> jars,
    List<Path> classPath,
    String driverMemory,
    Map<String, String> conf,
    List<String> arguments) {

  /** Copies the collections, so that a submission never changes. */
  public Submission {
    jars = List.copyOf(jars);
    classPath = List.copyOf(classPath);
    conf = Map.copyOf(conf);
    arguments = List.copyOf(arguments);
  }

  /** The same with another configuration. */
  Submission with(final Map<String, String> other) {
    return new Submission(
        master, mainClass, applicationJar, jars, classPath, driverMemory, other, arguments);
  }
}
