package com.nvidia.spark.rapids;

import io.zerohop.spark.rapids.setup.KudoPartitioning;
import io.zerohop.spark.rapids.write.KudoBatch;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Tuple2;

/**
 * RAPIDS' round robin partitioning, except that it passes its batches to the shuffle as a whole.
 */
public final class ZerohopRoundRobinPartitioning extends GpuRoundRobinPartitioning {
  private static final long serialVersionUID = 1;

  /** Where this was made; what RAPIDS' partitioning decides, it decides when it is made. */
  private final transient SQLConf planned = SQLConf.get();

  /** Spark copies expressions by a constructor with the parameters of the original's. */
  public ZerohopRoundRobinPartitioning(final int partitions) {
    super(partitions);
  }

  @Override
  public Tuple2<ColumnarBatch, Object>[] sliceInternalGpuOrCpuAndClose(
      final int rows, final int[] starts, final GpuColumnVector[] columns) {
    final Tuple2<ColumnarBatch, Object>[] split =
        KudoBatch.split(rows, starts, numPartitions(), columns);
    return split == null ? super.sliceInternalGpuOrCpuAndClose(rows, starts, columns) : split;
  }

  /** It is used for nothing else. */
  @Override
  public boolean usesGPUShuffle() {
    return true;
  }

  /** Of RAPIDS' own way by Kudo blocks, which goes over the host. */
  @Override
  public boolean usesKudoGPUSlicing() {
    return false;
  }

  /** Not RAPIDS' own: Spark drops what a rule returns if it equals what the rule was given. */
  @Override
  @SuppressWarnings("SuperCallToObjectMethod") // Only the stand-in for RAPIDS' class has none.
  public boolean equals(final Object other) {
    return other instanceof ZerohopRoundRobinPartitioning && super.equals(other);
  }

  @Override
  public boolean canEqual(final Object other) {
    return other instanceof ZerohopRoundRobinPartitioning;
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }

  /** Plans show it as what it stands for. */
  @Override
  public String nodeName() {
    return "GpuRoundRobinPartitioning";
  }

  @SuppressWarnings("UnusedMethod") // Java's serialization calls it.
  private Object writeReplace() {
    return KudoPartitioning.portable(planned, () -> new GpuRoundRobinPartitioning(numPartitions()));
  }
}
