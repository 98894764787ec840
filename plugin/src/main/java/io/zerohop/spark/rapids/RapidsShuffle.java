package io.zerohop.spark.rapids;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.spark.rapids.api.ExchangeMetrics;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.checksum.RetryChecksums;
import io.zerohop.spark.rapids.pressure.DevicePressure;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;

/** The plugin's interface to its RAPIDS code; nothing of it is loaded without RAPIDS. */
public final class RapidsShuffle {
  private RapidsShuffle() {}

  /** Whether a shuffle carries batches in GPU memory. */
  public static boolean isGpuShuffle(final ShuffleDependency<?, ?, ?> dependency) {
    return RapidsClasses.isGpuShuffle(dependency);
  }

  /** Tells the user once what a shuffle lacks; for the driver. */
  public static void advise(final ShuffleDependency<?, ?, ?> dependency) {
    ExchangeMetrics.of(dependency).warnOfMissing();
  }

  /**
   * Decides whether the map outputs of a GPU shuffle report row checksums, and tells Spark's
   * scheduler; for the driver, while the dependency is being made.
   */
  public static boolean reportsRowChecksums(final ShuffleDependency<?, ?, ?> dependency) {
    return RetryChecksums.enable(dependency);
  }

  /** The number of RAPIDS' GPU in this executor, among those visible here. */
  public static int deviceId() {
    return RapidsClasses.get().deviceId();
  }

  /**
   * Lets RAPIDS ask a node's pool for GPU memory when it runs out of it; for an executor in which
   * RAPIDS has started.
   *
   * @return ends that, to be called before the node is closed
   */
  public static Runnable shareMemory(final SparkConf conf, final ShuffleNode node) {
    return DevicePressure.answer(conf, node)::close;
  }
}
