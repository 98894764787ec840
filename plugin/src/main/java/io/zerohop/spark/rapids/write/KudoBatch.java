package io.zerohop.spark.rapids.write;

import ai.rapids.cudf.DeviceMemoryBuffer;
import io.zerohop.spark.rapids.format.KudoLayout;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A batch of which every partition is a block of RAPIDS' serializer, one behind the other in one
 * buffer on the GPU. RAPIDS carries it to the shuffle as one batch, with all rows and no columns,
 * and closes it. For one task's thread.
 */
public final class KudoBatch extends ColumnarBatch {
  private final DeviceMemoryBuffer blocks;
  private final KudoLayout layout;
  private final long[] packed;
  private boolean closed;

  /**
   * @param blocks owned from now on
   * @param layout where they lie in it
   * @param packed what each partition would take as a packed table
   */
  KudoBatch(final DeviceMemoryBuffer blocks, final KudoLayout layout, final long[] packed) {
    super(new ColumnVector[0], layout.rows());
    this.blocks = blocks;
    this.layout = layout;
    this.packed = packed;
  }

  KudoLayout layout() {
    return layout;
  }

  /** The memory of the blocks, which the batch keeps. */
  DeviceMemoryBuffer blocks() {
    return blocks;
  }

  /** Where that is on the GPU. */
  long address() {
    return blocks.getAddress();
  }

  /** All blocks, in slices of up to so many bytes, or of one block if that has more. */
  public List<KudoSlice> slices(final long most) {
    final List<KudoSlice> slices = new ArrayList<>();
    for (final int[] range : layout.ranges(most)) {
      slices.add(new KudoSlice(this, range[0], range[1]));
    }
    return slices;
  }

  /** Adds up what map statuses say of partitions. */
  public void addSizes(final TableSizes sizes) {
    for (int partition = 0; partition < packed.length; partition++) {
      if (layout.rows(partition) > 0) {
        sizes.add(partition, packed[partition]);
      }
    }
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      blocks.close();
    }
  }
}
