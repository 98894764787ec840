package io.zerohop.spark;

/**
 * The release of Zerohop's jar that a process runs, as its manifest says. What driver and executors
 * tell each other, and the memory that they share, has no form that two releases agree on.
 */
final class JarVersion {
  /** Of classes that do not come from a jar of ours. */
  private static final String UNKNOWN = "";

  private JarVersion() {}

  /** This process's; empty if it is not known. */
  static String own() {
    final String version = JarVersion.class.getPackage().getImplementationVersion();
    return version == null ? UNKNOWN : version;
  }

  /**
   * Refuses to work with a driver of another release.
   *
   * @param driver the driver's
   * @param executor this process's
   * @param executorId names this process in the message
   * @throws IllegalStateException if they differ; says what to do
   */
  static void check(final String driver, final String executor, final String executorId) {
    // An older driver's handle has no version, which is read as null.
    if (executor.equals(driver) || UNKNOWN.equals(driver) || UNKNOWN.equals(executor)) {
      return;
    }
    throw new IllegalStateException(
        "The driver has Zerohop "
            + (driver == null ? "of an older release" : driver)
            + " and executor "
            + executorId
            + " has "
            + executor
            + ". Give all of them the same zerohop-spark jar: in $SPARK_HOME/jars of each node, or by"
            + " spark.jars or spark.driver.extraClassPath and spark.executor.extraClassPath");
  }
}
