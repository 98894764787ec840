package com.nvidia.spark.rapids;

import ai.rapids.cudf.ContiguousTable;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;

/** As RAPIDS': the only column of a batch that is a packed table. */
public final class GpuPackedTableColumn extends GpuColumnVectorBase {
  private final ContiguousTable table;

  private GpuPackedTableColumn(final ContiguousTable table) {
    super(DataTypes.NullType);
    this.table = table;
  }

  /**
   * A batch of a packed table.
   *
   * @param table owned by the batch
   */
  public static ColumnarBatch from(final ContiguousTable table) {
    return new ColumnarBatch(
        new ColumnVector[] {new GpuPackedTableColumn(table)}, (int) table.getRowCount());
  }

  public ContiguousTable getContiguousTable() {
    return table;
  }

  @Override
  public void close() {
    table.close();
  }
}
