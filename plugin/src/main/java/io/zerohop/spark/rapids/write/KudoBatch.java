package io.zerohop.spark.rapids.write;

import ai.rapids.cudf.DeviceMemoryBuffer;
import io.zerohop.spark.rapids.checksum.RowHash;
import io.zerohop.spark.rapids.format.KudoLayout;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A batch split into blocks of RAPIDS' serializer, one for each partition, adjacent in one buffer
 * on the GPU. RAPIDS carries it to the shuffle as one batch, with all rows and no columns, and
 * closes it. For one task's thread.
 */
public final class KudoBatch extends ColumnarBatch {
  private final DeviceMemoryBuffer blocks;
  private final KudoLayout layout;
  private final long[] packed;

  /** The rows as they were before the split, for their checksum; none after {@link #hash}. */
  private ai.rapids.cudf.ColumnVector[] unsplit;

  private boolean closed;

  /**
   * @param blocks owned from now on
   * @param layout where they lie in it
   * @param packed what each partition would take as a packed table
   * @param unsplit the rows before the split; a reference on each is taken
   */
  KudoBatch(
      final DeviceMemoryBuffer blocks,
      final KudoLayout layout,
      final long[] packed,
      final ai.rapids.cudf.ColumnVector[] unsplit) {
    super(new ColumnVector[0], layout.rows());
    this.blocks = blocks;
    this.layout = layout;
    this.packed = packed;
    this.unsplit = unsplit;
    for (final ai.rapids.cudf.ColumnVector column : unsplit) {
      column.incRefCount();
    }
  }

  /**
   * Launches the hash of the rows, and frees them behind it in the order of the thread's stream.
   *
   * @param hash of the map output; null if it reports no checksum
   */
  void hash(final RowHash hash) {
    try {
      if (hash != null) {
        hash.add(unsplit, layout.firstRows());
        hash.launch();
      }
    } finally {
      closeColumns();
    }
  }

  private void closeColumns() {
    for (final ai.rapids.cudf.ColumnVector column : unsplit) {
      column.close();
    }
    unsplit = new ai.rapids.cudf.ColumnVector[0];
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
  List<KudoSlice> slices(final long most) {
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
      closeColumns();
      blocks.close();
    }
  }
}
