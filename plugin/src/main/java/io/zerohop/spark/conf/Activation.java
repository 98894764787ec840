package io.zerohop.spark.conf;

import io.zerohop.device.Message;
import io.zerohop.spark.compat.SparkFeature;
import io.zerohop.spark.compat.SparkProbe;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.log.UnusableException;
import java.io.File;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.SparkConf;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Decides whether this application's shuffles use Zerohop, once, when the manager is created. Bad
 * values stop the application there; what Zerohop cannot work with makes it step aside with one
 * sentence.
 */
public final class Activation {
  private static final Logger LOG = LoggerFactory.getLogger(Activation.class);

  private static final String FALLBACK = "spark.storage.decommission.fallbackStorage.path";

  /** Map outputs have the number of their partition with it, not one of their own. */
  private static final String OLD_PROTOCOL = "spark.shuffle.useOldFetchProtocol";

  private static final String LOCAL_FILES =
      "org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO";

  private Activation() {}

  /**
   * Checks the configuration.
   *
   * @throws IllegalArgumentException for a value that is not valid
   * @throws IllegalStateException if executors could not load this class
   */
  public static boolean check(final SparkConf conf, final boolean isDriver) {
    if (!ZerohopConf.of(conf).enabled()) {
      return false;
    }
    if (isDriver) {
      KeeperReach.reached(false);
      if (KeeperReach.isSet(conf)) {
        conf.remove(KeeperReach.IO_PLUGIN); // Copied from an earlier application's keys.
      }
    }
    final Message obstacle = obstacle(conf);
    if (isDriver) {
      final List<String> unknown = ZerohopConf.unknown(conf);
      final List<String> renamed = ZerohopConf.renamed(conf);
      if (!renamed.isEmpty()) {
        SparkCode.RENAMED_KEYS
            .says("keys have new names; the old ones go on working")
            .at(String.join(", ", renamed))
            .remedy("use the new names")
            .warn(LOG);
      }
      if (!unknown.isEmpty()) {
        SparkCode.UNKNOWN_KEYS
            .says("unknown keys have no effect")
            .at(String.join(", ", unknown))
            .remedy("see docs/configuration.md")
            .warn(LOG);
      }
      if (obstacle != null) {
        SparkCode.STEPS_ASIDE
            .says("Zerohop steps aside and leaves shuffles to Spark's sort shuffle")
            .because(obstacle)
            .warn(LOG);
      } else {
        final boolean keeps = ZerohopConf.of(conf).keeper().enabled();
        tellOf(SparkProbe.here(), keeps);
        refuseLateJar(conf);
        keepToTheBlockTransferService(conf);
        doWithoutFallbackStorage(conf);
        askForNoDiagnosis(conf);
        if (keeps && SparkProbe.here().has(SparkFeature.KEEPER)) {
          conf.set(KeeperReach.IO_PLUGIN, KeeperReach.IO_CLASS);
          KeeperReach.reached(true); // As far as is known, before there is any executor.
        }
      }
    }
    return obstacle == null;
  }

  /** Returns what Zerohop cannot work with, and the way out of it; null if there is nothing. */
  public static @Nullable Message obstacle(final SparkConf conf) {
    final Message lacks = SparkProbe.here().sentence(SparkFeature.SHUFFLE);
    if (lacks != null) {
      return lacks
          .code(SparkCode.SPARK_INCOMPLETE)
          .remedy("use an Apache Spark of docs/compatibility.md to use Zerohop");
    }
    if (conf.getBoolean("spark.shuffle.service.enabled", false)) {
      return SparkCode.EXTERNAL_SHUFFLE_SERVICE
          .says("the external shuffle service cannot serve blocks in executors' memory")
          .remedy("set spark.shuffle.service.enabled=false to use Zerohop");
    }
    if (conf.getBoolean(OLD_PROTOCOL, false)) {
      return SparkCode.OLD_FETCH_PROTOCOL
          .says("the old fetch protocol calls every attempt of a map task by the same number")
          .remedy("unset " + OLD_PROTOCOL + " to use Zerohop");
    }
    final String files = conf.get(KeeperReach.IO_PLUGIN, LOCAL_FILES);
    if (!files.equals(LOCAL_FILES) && !files.equals(KeeperReach.IO_CLASS)) {
      return SparkCode.OTHER_SHUFFLE_IO
          .says(
              KeeperReach.IO_PLUGIN
                  + " stores map outputs by "
                  + files
                  + ", and Zerohop keeps them in executors' memory")
          .remedy("unset " + KeeperReach.IO_PLUGIN + " to use Zerohop");
    }
    return null;
  }

  /** Says once for each feature that this Spark lacks what it takes. */
  private static void tellOf(final SparkProbe spark, final boolean keeps) {
    for (final SparkFeature feature : SparkFeature.values()) {
      final boolean isAsked = keeps || feature != SparkFeature.KEEPER;
      final Message lacks = isAsked ? spark.sentence(feature) : null;
      if (lacks != null) {
        lacks
            .code(SparkCode.SPARK_WITHOUT)
            .remedy("use an Apache Spark of docs/compatibility.md to have it")
            .warn(LOG);
      }
    }
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
      throw new UnusableException(
          Message.of(
                  "executors of Spark "
                      + version
                      + " create the shuffle manager before they fetch --jars (spark.jars)")
              .remedy(
                  "put the zerohop-spark jar into $SPARK_HOME/jars on every node, or name it in"
                      + " spark.executor.extraClassPath and spark.driver.extraClassPath"));
    }
  }

  /**
   * Spark may read another executor's files on the same host directly. An output in memory has no
   * file, and only its owner can make one. Nothing else reads by this key, so a user's value does
   * not stand: files that are missing would look as if a healthy owner had lost its outputs.
   */
  private static void keepToTheBlockTransferService(final SparkConf conf) {
    conf.set("spark.shuffle.readHostLocalDisk", "false");
  }

  /**
   * Spark copies files into its fallback storage from a resolver of its own class only; ours cannot
   * be one, since the constructors of that class differ between the versions. With any other it
   * copies nothing, and counts the map output as saved all the same. Without the key it goes on
   * looking for an executor that takes it, and says so if there is none.
   */
  private static void doWithoutFallbackStorage(final SparkConf conf) {
    if (conf.contains(FALLBACK)) {
      SparkCode.FALLBACK_STORAGE_OFF
          .says(
              "turned the fallback storage off, since Spark saves nothing of Zerohop's there;"
                  + " decommissioned executors hand map outputs to others"
                  + " (spark.storage.decommission.shuffleBlocks.enabled), and what none of them"
                  + " accepts is computed again")
          .at(FALLBACK)
          .remedy("set spark.zerohop.enabled=false if map outputs have to be saved")
          .warn(LOG);
      conf.remove(FALLBACK);
    }
  }

  /**
   * A reader of Spark's asks the owner of a damaged block what is wrong with it, and the owner
   * expects a resolver of Spark's own class. Ours verifies each block of a file before it is sent,
   * so an owner says by itself which one is damaged on its disk.
   */
  private static void askForNoDiagnosis(final SparkConf conf) {
    conf.setIfMissing("spark.shuffle.checksum.enabled", "false");
  }

  private static java.util.stream.Stream<String> names(final String list) {
    return Arrays.stream(list.split(",")).map(path -> path.substring(path.lastIndexOf('/') + 1));
  }

  private static boolean isOurs(final String fileName) {
    return fileName.startsWith("zerohop-spark");
  }
}
