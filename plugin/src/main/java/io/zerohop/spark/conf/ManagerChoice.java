package io.zerohop.spark.conf;

import io.zerohop.device.Message;
import io.zerohop.spark.log.SparkCode;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.shuffle.ShuffleManager;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Chooses the shuffle manager for an application that names only Zerohop's plugin, and says why
 * another manager is in place.
 *
 * <p>From version 4.0 on Spark makes the shuffle manager after the plugins, so the plugin sets the
 * key {@value #KEY} for the driver, whose configuration executors get. Before, the manager is there
 * first. Which of the two holds is seen by the manager, not by the version: a vendor's Spark may
 * differ.
 *
 * <p>Spark makes all plugins before it starts any. RAPIDS 26.08 and later also choose a manager
 * where none is set, but when their plugin starts. So a value that a constructor finds is the
 * user's, whatever it names, and RAPIDS keeps the value that the constructor sets.
 */
public final class ManagerChoice {
  public static final String KEY = "spark.shuffle.manager";

  private static final Logger LOG = LoggerFactory.getLogger(ManagerChoice.class);

  private static final String SORT = "sort";

  /** Set by the plugin where it has chosen Zerohop's manager; not for users. */
  private static final String CHOSEN = "spark.zerohop.internal.manager";

  private ManagerChoice() {}

  /**
   * Sets the manager if the user has not and Spark has not made one. To be called by the
   * constructor of the plugin in the driver.
   *
   * @param conf the live configuration
   * @throws IllegalArgumentException if a key is not valid
   */
  public static void prepare(final SparkConf conf) {
    choose(conf, inPlace() != null);
  }

  private static void choose(final SparkConf conf, final boolean made) {
    if (made || conf.contains(KEY)) {
      return;
    }
    if (ZerohopConf.of(conf).enabled()) {
      conf.set(KEY, ZerohopConf.SHUFFLE_MANAGER).set(CHOSEN, "true");
    } else {
      // Otherwise RAPIDS would choose its own manager, and the key promises Spark's.
      conf.set(KEY, SORT);
    }
  }

  /** Returns the class name of this process's shuffle manager; null if Spark has made none yet. */
  public static @Nullable String inPlace() {
    final SparkEnv env = SparkEnv.get();
    final ShuffleManager made = env == null ? null : env.shuffleManager();
    return made == null ? null : made.getClass().getName();
  }

  /**
   * Returns the class name of the manager that an application will have.
   *
   * @param conf gets the key as the plugin would set it
   * @param spark Spark's version
   */
  public static String foresee(final SparkConf conf, final String spark) {
    if (hasPlugin(conf)) {
      choose(conf, isBefore4(spark));
    }
    final String name = conf.get(KEY, SORT);
    return name.equals(SORT) || name.equals("tungsten-sort")
        ? SortShuffleManager.class.getName()
        : name;
  }

  /**
   * Warns once where Zerohop is enabled and another manager is in place. To be called in the driver
   * after all plugins have started.
   *
   * @return the warning; null if there is nothing to say
   */
  public static @Nullable Message warnOfOther(final SparkConf conf, final String spark) {
    final Message why = ZerohopConf.of(conf).enabled() ? obstacle(conf, inPlace(), spark) : null;
    if (why != null) {
      why.warn(LOG);
    }
    return why;
  }

  /**
   * Returns which other manager is in place, why, and what makes it Zerohop's; null if it is.
   *
   * @param manager class name of the application's manager; absent if Spark has made none
   */
  public static @Nullable Message obstacle(
      final SparkConf conf, final @Nullable String manager, final String spark) {
    if (ZerohopConf.SHUFFLE_MANAGER.equals(manager)) {
      return null;
    }
    final String set = conf.get(KEY, "");
    final String cause;
    if (conf.getBoolean(CHOSEN, false)) {
      cause = "something changed " + KEY + " after Zerohop's plugin had set it";
    } else if (set.equals(ZerohopConf.SHUFFLE_MANAGER)) {
      cause = KEY + " names Zerohop's, but was set too late or is not followed by this Spark";
    } else if (!set.isEmpty()) {
      cause = KEY + " is set to " + set;
    } else if (hasPlugin(conf)) {
      cause =
          "Spark " + spark + " makes the shuffle manager before the plugins, which cannot set it";
    } else {
      cause = KEY + " is not set";
    }
    return SparkCode.OTHER_MANAGER
        .says("the shuffle manager is " + manager + ", not Zerohop's")
        .because(cause)
        .remedy(
            set.isEmpty() && !hasPlugin(conf) && !isBefore4(spark)
                ? "set " + Plugins.KEY + "=" + withPlugin(conf)
                : "set " + KEY + "=" + ZerohopConf.SHUFFLE_MANAGER);
  }

  private static String withPlugin(final SparkConf conf) {
    final String others = conf.get(Plugins.KEY, "").trim();
    return others.isEmpty() ? Plugins.ZEROHOP : others + "," + Plugins.ZEROHOP;
  }

  private static boolean hasPlugin(final SparkConf conf) {
    return Plugins.has(key -> conf.get(key, null), Plugins.ZEROHOP);
  }

  private static boolean isBefore4(final String spark) {
    return spark.startsWith("3.");
  }
}
