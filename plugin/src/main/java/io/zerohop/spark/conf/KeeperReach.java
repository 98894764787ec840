package io.zerohop.spark.conf;

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkConf;

/**
 * Knows if an application has keepers, and if all its executors reach them. Apart from {@link
 * ReliableShuffleIo}, which links what a vendor's Spark may lack. Thread safe.
 */
public final class KeeperReach {
  static final String IO_PLUGIN = "spark.shuffle.sort.io.plugin.class";
  static final String IO_CLASS = "io.zerohop.spark.conf.ReliableShuffleIo";

  /** Of the application whose driver is this process; Spark makes one at a time. */
  private static final AtomicBoolean REACHED = new AtomicBoolean();

  private KeeperReach() {}

  public static boolean isSet(final SparkConf conf) {
    return IO_CLASS.equals(conf.get(IO_PLUGIN, ""));
  }

  /** Says whether each keeper of the application whose driver is here is reached by all. */
  public static void reached(final boolean byAll) {
    REACHED.set(byAll);
  }

  /** Returns what {@link #reached} said last. */
  static boolean isReached() {
    return REACHED.get();
  }
}
