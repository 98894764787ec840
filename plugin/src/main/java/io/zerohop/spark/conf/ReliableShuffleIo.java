package io.zerohop.spark.conf;

import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.spark.SparkConf;
import org.apache.spark.shuffle.api.ShuffleDriverComponents;
import org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO;
import org.apache.spark.shuffle.sort.io.LocalDiskShuffleDriverComponents;

/**
 * Spark's own store of shuffle files, with the one difference that Spark leaves outputs of lost
 * executors alone, as long as keepers are in the reach of all executors. {@code keeper.KeptOutputs}
 * removes those that no keeper has. Thread safe.
 */
public final class ReliableShuffleIo extends LocalDiskShuffleDataIO {
  private static final String KEY = "spark.shuffle.sort.io.plugin.class";

  /** Of the application whose driver is this process; Spark makes one at a time. */
  private static final AtomicBoolean REACHED = new AtomicBoolean();

  /** Called by Spark. */
  public ReliableShuffleIo(final SparkConf conf) {
    super(conf);
  }

  /** Returns whether an application has it, and so keepers. */
  public static boolean isSet(final SparkConf conf) {
    return ReliableShuffleIo.class.getName().equals(conf.get(KEY, ""));
  }

  /** Says whether each keeper of the application whose driver is here is reached by all. */
  public static void reached(final boolean byAll) {
    REACHED.set(byAll);
  }

  @Override
  public ShuffleDriverComponents driver() {
    return new LocalDiskShuffleDriverComponents() {
      @Override
      public boolean supportsReliableStorage() {
        return REACHED.get();
      }
    };
  }
}
