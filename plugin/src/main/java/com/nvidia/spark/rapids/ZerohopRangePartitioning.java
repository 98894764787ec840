package com.nvidia.spark.rapids;

import com.nvidia.spark.rapids.shims.GpuHashPartitioning;
import com.nvidia.spark.rapids.shims.GpuRangePartitioning;
import io.zerohop.spark.rapids.setup.KudoPartitioning;
import io.zerohop.spark.rapids.write.KudoBatch;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.SortOrder;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Tuple2;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;

/**
 * Replaces RAPIDS' range partitioning in a plan, so that its partitioner passes whole batches to
 * the shuffle. RAPIDS samples the rows of an exchange itself only for its own class. For any other
 * partitioning it asks for the bound form ({@link GpuBind}), when the exchange runs and on the
 * thread on which it would sample. This class samples there in the same way.
 *
 * <p>It extends hash partitioning because RAPIDS binds partitionings of that kind; no row is
 * hashed. {@link KudoPartitioning} defines it where RAPIDS' own classes are. Tasks never carry it.
 */
public final class ZerohopRangePartitioning extends GpuHashPartitioning implements GpuBind {
  private static final long serialVersionUID = 1;

  /** The exchange's child, whose rows are sampled. */
  private transient SparkPlan child;

  /** Spark copies expressions by a constructor with the parameters of the original's. */
  public ZerohopRangePartitioning(
      final Seq<Expression> ordering, final int partitions, final HashMode mode) {
    super(ordering, partitions, mode);
  }

  /**
   * Makes one of RAPIDS' own.
   *
   * @param child the child of the exchange
   */
  @SuppressWarnings("unchecked")
  public static ZerohopRangePartitioning of(
      final GpuRangePartitioning original, final SparkPlan child) {
    final ZerohopRangePartitioning ours =
        new ZerohopRangePartitioning(
            (Seq<Expression>) (Seq<?>) original.gpuOrdering(),
            original.numPartitions(),
            Murmur3Mode$.MODULE$);
    ours.child = child;
    return ours;
  }

  /** Samples the child's rows, and makes a partitioner of the bounds that this gives. */
  @Override
  public GpuExpression bind(final StandInForAttributeSeqInAPackageObject input) {
    final Seq<Attribute> attributes = input.attrs();
    final GpuSorter sorter = new GpuSorter(ordering(), attributes, Map$.MODULE$.empty());
    final InternalRow[] bounds =
        GpuRangePartitioner.createRangeBounds(
            numPartitions(),
            sorter,
            child.executeColumnar(),
            SQLConf.get().rangeExchangeSampleSizePerPartition());
    return new Partitioner(bounds, sorter, numPartitions());
  }

  @SuppressWarnings("unchecked")
  private Seq<SortOrder> ordering() {
    return (Seq<SortOrder>) (Seq<?>) expressions();
  }

  /** A copy samples the same child. */
  @Override
  public Expression makeCopy(final Object[] arguments) {
    final TreeNode<?> copy = super.makeCopy(arguments);
    ((ZerohopRangePartitioning) copy).child = child;
    return (Expression) copy;
  }

  @Override
  public boolean usesGPUShuffle() {
    return true;
  }

  @Override
  public boolean usesKudoGPUSlicing() {
    return false;
  }

  /** Not RAPIDS' own: Spark drops what a rule returns if it equals what the rule was given. */
  @Override
  @SuppressWarnings("SuperCallToObjectMethod") // Not in RAPIDS' class, which is a case class.
  public boolean equals(final Object other) {
    return other instanceof ZerohopRangePartitioning && super.equals(other);
  }

  @Override
  public boolean canEqual(final Object other) {
    return other instanceof ZerohopRangePartitioning;
  }

  @Override
  public int hashCode() {
    return super.hashCode();
  }

  /** Plans show it as what it stands for. */
  @Override
  public String nodeName() {
    return "GpuRangePartitioning";
  }

  @SuppressWarnings("UnusedMethod") // Java's serialization calls it.
  private Object writeReplace() {
    return new GpuRangePartitioning(ordering(), numPartitions());
  }

  /**
   * RAPIDS' range partitioner, except that it passes its batches to the shuffle as a whole. Tasks
   * that carry it carry RAPIDS' own in its stead.
   */
  public static final class Partitioner extends GpuRangePartitioner {
    private static final long serialVersionUID = 1;

    private final transient SQLConf planned = SQLConf.get();
    private final int shufflePartitions;

    /**
     * @param shufflePartitions of the shuffle, which may have more than there are bounds for
     */
    public Partitioner(
        final InternalRow[] bounds, final GpuSorter sorter, final int shufflePartitions) {
      super(bounds, sorter);
      this.shufflePartitions = shufflePartitions;
    }

    /** Makes one of RAPIDS' own. */
    public static Partitioner of(final GpuRangePartitioner original, final int shufflePartitions) {
      return new Partitioner(original.rangeBounds(), original.sorter(), shufflePartitions);
    }

    @Override
    public Tuple2<ColumnarBatch, Object>[] sliceInternalGpuOrCpuAndClose(
        final int rows, final int[] starts, final GpuColumnVector[] columns) {
      final int[] padded = Arrays.copyOf(starts, shufflePartitions);
      final int used = Math.min(starts.length, numPartitions());
      Arrays.fill(padded, Math.min(used, shufflePartitions), shufflePartitions, rows);
      final Tuple2<ColumnarBatch, Object>[] split =
          KudoBatch.split(rows, padded, shufflePartitions, columns);
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
      return other instanceof Partitioner range
          && range.shufflePartitions == shufflePartitions
          && super.equals(other);
    }

    @Override
    public boolean canEqual(final Object other) {
      return other instanceof Partitioner;
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
}
