package io.zerohop.spark;

import java.io.File;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.SparkConf;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether this application's shuffles go through Zerohop, decided once when the manager is made.
 * Bad values stop the application there; what Zerohop cannot work with makes it step aside with one
 * sentence.
 */
final class Activation {
  private static final Logger LOG = LoggerFactory.getLogger(Activation.class);

  private Activation() {}

  /**
   * Checks the configuration.
   *
   * @throws IllegalArgumentException for a value that is not valid
   * @throws IllegalStateException if executors could not load this class
   */
  static boolean check(final SparkConf conf, final boolean isDriver) {
    final List<String> unknown = ZerohopConf.validate(conf);
    if (!ZerohopConf.ENABLED.get(conf)) {
      return false;
    }
    final boolean service = conf.getBoolean("spark.shuffle.service.enabled", false);
    if (isDriver) {
      if (!unknown.isEmpty()) {
        LOG.warn("Zerohop does not know the keys {}; see docs/configuration.md", unknown);
      }
      if (service) {
        LOG.warn(
            "Zerohop steps aside and leaves shuffles to Spark's sort shuffle: blocks in executors'"
                + " memory cannot be served by the external shuffle service. Set"
                + " spark.shuffle.service.enabled=false to use Zerohop.");
      } else {
        refuseLateJar(conf);
        keepToTheBlockTransferService(conf);
      }
    }
    return !service;
  }

  /**
   * Spark 3.5 makes an executor's shuffle manager before it fetches the application's jars, so a
   * jar given by {@code --jars} is not there in time. The driver, which has it, can say so in time.
   */
  private static void refuseLateJar(final SparkConf conf) {
    final String version = org.apache.spark.package$.MODULE$.SPARK_VERSION();
    final boolean local = conf.get("spark.master", "").matches("local(\\[.*\\])?");
    if (!version.startsWith("3.") || local) {
      return;
    }
    final boolean inJars = names(conf.get("spark.jars", "")).anyMatch(Activation::isOurs);
    final boolean onClassPath =
        Arrays.stream(conf.get("spark.executor.extraClassPath", "").split(File.pathSeparator))
            .map(path -> path.substring(path.lastIndexOf('/') + 1))
            .anyMatch(name -> isOurs(name) || name.equals("*"));
    if (inJars && !onClassPath) {
      throw new IllegalStateException(
          "On Spark "
              + version
              + " executors create the shuffle manager before they fetch --jars (spark.jars)."
              + " Put the zerohop-spark jar into $SPARK_HOME/jars on every node, or name it in"
              + " spark.executor.extraClassPath and spark.driver.extraClassPath");
    }
  }

  /**
   * Spark may read another executor's files on the same host directly. An output in memory has no
   * file, and only its owner can make one.
   */
  private static void keepToTheBlockTransferService(final SparkConf conf) {
    conf.setIfMissing("spark.shuffle.readHostLocalDisk", "false");
  }

  private static java.util.stream.Stream<String> names(final String list) {
    return Arrays.stream(list.split(",")).map(path -> path.substring(path.lastIndexOf('/') + 1));
  }

  private static boolean isOurs(final String fileName) {
    return fileName.startsWith("zerohop-spark");
  }
}
