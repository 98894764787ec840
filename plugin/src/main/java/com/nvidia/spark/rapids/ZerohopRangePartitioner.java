package com.nvidia.spark.rapids;

import io.zerohop.spark.rapids.setup.KudoPartitioning;
import io.zerohop.spark.rapids.write.KudoSplit;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Tuple2;

/**
 * RAPIDS' range partitioner, except that it passes its batches to the shuffle as a whole. Tasks
 * that carry it carry RAPIDS' own in its stead.
 */
public final class ZerohopRangePartitioner extends GpuRangePartitioner {
  private static final long serialVersionUID = 1;

  private final transient SQLConf planned = SQLConf.get();
  private final int shufflePartitions;

  /**
   * @param shufflePartitions of the shuffle, which may have more than there are bounds for
   */
  public ZerohopRangePartitioner(
      final InternalRow[] bounds, final GpuSorter sorter, final int shufflePartitions) {
    super(bounds, sorter);
    this.shufflePartitions = shufflePartitions;
  }

  /** Makes one of RAPIDS' own. */
  public static ZerohopRangePartitioner of(
      final GpuRangePartitioner original, final int shufflePartitions) {
    return new ZerohopRangePartitioner(
        original.rangeBounds(), original.sorter(), shufflePartitions);
  }

  @Override
  public Tuple2<ColumnarBatch, Object>[] sliceInternalGpuOrCpuAndClose(
      final int rows, final int[] starts, final GpuColumnVector[] columns) {
    final int[] padded = Arrays.copyOf(starts, shufflePartitions);
    final int used = Math.min(starts.length, numPartitions());
    Arrays.fill(padded, Math.min(used, shufflePartitions), shufflePartitions, rows);
    final Tuple2<ColumnarBatch, Object>[] split =
        KudoSplit.split(rows, padded, shufflePartitions, columns);
    return split == null ? super.sliceInternalGpuOrCpuAndClose(rows, starts, columns) : split;
  }

  @Override
  public boolean usesGPUShuffle() {
    return true;
  }

  @Override
  public boolean usesKudoGPUSlicing() {
    return false;
  }

  @Override
  @SuppressWarnings("SuperCallToObjectMethod") // Not in RAPIDS' class, which is a case class.
  public boolean equals(final Object other) {
    return other instanceof ZerohopRangePartitioner range
        && range.shufflePartitions == shufflePartitions
        && super.equals(other);
  }

  @Override
  public boolean canEqual(final Object other) {
    return other instanceof ZerohopRangePartitioner;
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }

  @Override
  public String nodeName() {
    return "GpuRangePartitioner";
  }

  @SuppressWarnings("UnusedMethod") // Java's serialization calls it.
  private Object writeReplace() {
    return KudoPartitioning.portable(
        planned, () -> new GpuRangePartitioner(rangeBounds(), sorter()), shufflePartitions);
  }
}
