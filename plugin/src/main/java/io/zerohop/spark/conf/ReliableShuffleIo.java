package io.zerohop.spark.conf;

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

  /** Called by Spark. */
  public ReliableShuffleIo(final SparkConf conf) {
    super(conf);
  }

  @Override
  public ShuffleDriverComponents driver() {
    return new LocalDiskShuffleDriverComponents() {
      @Override
      public boolean supportsReliableStorage() {
        return KeeperReach.isReached();
      }
    };
  }
}
