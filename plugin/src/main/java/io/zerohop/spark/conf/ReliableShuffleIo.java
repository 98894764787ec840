package io.zerohop.spark.conf;

import io.zerohop.shuffle.conf.Config;
import org.apache.spark.SparkConf;
import org.apache.spark.shuffle.api.ShuffleDriverComponents;
import org.apache.spark.shuffle.sort.io.LocalDiskShuffleDataIO;
import org.apache.spark.shuffle.sort.io.LocalDiskShuffleDriverComponents;

/**
 * Spark's own store of shuffle files, with the one difference that Spark leaves outputs of lost
 * executors alone. {@code keeper.LostOutputs} removes those that no keeper has.
 */
public final class ReliableShuffleIo extends LocalDiskShuffleDataIO {
  private static final String KEY = "spark.shuffle.sort.io.plugin.class";

  private final boolean wanted;

  /** Called by Spark. */
  public ReliableShuffleIo(final SparkConf conf) {
    super(conf);
    final Config keys = ZerohopConf.of(conf);
    this.wanted = keys.enabled() && keys.keeper().enabled();
  }

  /** Returns whether an application has it, and so keepers. */
  public static boolean isSet(final SparkConf conf) {
    return ReliableShuffleIo.class.getName().equals(conf.get(KEY, ""));
  }

  @Override
  public ShuffleDriverComponents driver() {
    return new LocalDiskShuffleDriverComponents() {
      @Override
      public boolean supportsReliableStorage() {
        return wanted; // False where an earlier application's key was copied.
      }
    };
  }
}
