package io.zerohop.spark.rapids;

import ai.rapids.cudf.DeviceMemoryBuffer;
import io.zerohop.shuffle.ExtentConsumer;
import io.zerohop.shuffle.PackSource;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/**
 * A batch of which every partition is a block of RAPIDS' serializer, one behind the other in one
 * buffer on the GPU. RAPIDS carries it to the shuffle as one batch, with all rows and no columns,
 * and closes it. For one task's thread.
 */
final class KudoBatch extends ColumnarBatch implements OutputBatch {
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

  /** Adds up what map statuses say of partitions. */
  void addSizes(final TableSizes sizes) {
    for (int partition = 0; partition < packed.length; partition++) {
      if (layout.rows(partition) > 0) {
        sizes.add(partition, packed[partition]);
      }
    }
  }

  @Override
  public boolean isEmpty() {
    return bytes() == 0;
  }

  @Override
  public long bytes() {
    return layout.bytes();
  }

  /** None: blocks describe themselves. */
  @Override
  public PackSource headers() {
    return null;
  }

  @Override
  public byte[] header(final int partition) {
    return new byte[0];
  }

  @Override
  public PackSource payload() {
    return new PackSource() {
      @Override
      public int partitions() {
        return layout.partitions();
      }

      @Override
      public boolean onDevice() {
        return true;
      }

      @Override
      public void forEachChunk(final int partition, final ExtentConsumer consumer) {
        if (layout.bytes(partition) > 0) {
          consumer.extent(
              blocks.getAddress() + layout.starts()[partition], layout.bytes(partition));
        }
      }
    };
  }

  @Override
  public long[] layOut(final long first, final Placing placing) {
    return layout.layOut(first, (offset, at, bytes) -> placing.place(blocks, offset, at, bytes));
  }

  @Override
  public void close() {
    if (!closed) {
      closed = true;
      blocks.close();
    }
  }
}
