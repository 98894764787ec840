package io.zerohop.spark;

import io.zerohop.spark.compat.JarVersion;
import io.zerohop.spark.metrics.ReadMetrics.PathAccumulators;
import java.io.IOException;
import java.io.ObjectInputStream;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.shuffle.BaseShuffleHandle;
import org.jspecify.annotations.Nullable;

/**
 * The driver's description of a shuffle for tasks: its dependency, the application's secret for the
 * exchange of segments (empty if derived from Spark's own), and its metrics.
 *
 * @param <K> key type
 * @param <V> value type
 * @param <C> combiner type
 */
final class ZerohopShuffleHandle<K, V, C> extends BaseShuffleHandle<K, V, C> {
  private static final long serialVersionUID = 1L;

  private final byte[] secret;
  private final PathAccumulators accumulators;
  private final boolean gpu;
  private final boolean rowChecksums;

  /** Absent once read from the handle of an older release. */
  private final @Nullable String driverVersion = JarVersion.own();

  ZerohopShuffleHandle(
      final int shuffleId,
      final ShuffleDependency<K, V, C> dependency,
      final byte[] secret,
      final PathAccumulators accumulators,
      final boolean gpu,
      final boolean rowChecksums) {
    super(shuffleId, dependency);
    this.gpu = gpu;
    this.rowChecksums = rowChecksums;
    this.secret = secret;
    this.accumulators = accumulators;
  }

  /** A task has brought it to an executor, and will soon write or read by it. */
  private void readObject(final ObjectInputStream in) throws IOException, ClassNotFoundException {
    in.defaultReadObject();
    MemoryShuffleManager.arrived(this);
  }

  byte[] secret() {
    return secret;
  }

  /** Returns whether it carries RAPIDS' batches in GPU memory. */
  boolean gpu() {
    return gpu;
  }

  /**
   * Returns whether map outputs in GPU memory report row checksums. The driver has told Spark's
   * scheduler so; executors cannot ask the dependency, which computes its answer from what only the
   * driver has.
   */
  boolean rowChecksums() {
    return rowChecksums;
  }

  PathAccumulators accumulators() {
    return accumulators;
  }

  /** The driver's {@link JarVersion}; null if its release did not tell. */
  @Nullable String driverVersion() {
    return driverVersion;
  }
}
