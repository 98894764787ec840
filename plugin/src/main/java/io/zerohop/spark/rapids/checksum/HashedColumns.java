package io.zerohop.spark.rapids.checksum;

import ai.rapids.cudf.BaseDeviceMemoryBuffer;
import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.ColumnView;
import ai.rapids.cudf.DType;
import com.nvidia.spark.rapids.ShimLoader;
import io.zerohop.device.RowHashBatch;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.api.RapidsMember;
import java.lang.invoke.MethodHandle;

/**
 * Tells a device where plain columns of cudf lie, so that it can hash the rows of each partition. A
 * row has the hash that it has in a packed table ({@link HashedTable}). Takes no memory of the GPU
 * and waits for nothing. Columns begin with their first row: cudf's owned columns have no offset.
 */
final class HashedColumns {
  private final RowHashBatch batch;
  private int added;

  private HashedColumns(final RowHashBatch batch) {
    this.batch = batch;
  }

  /** Binds cudf's own method, since the public one waits for the GPU to count a string's bytes. */
  private static final class DataAddress {
    static final MethodHandle OF = bind();

    private static MethodHandle bind() {
      try {
        return RapidsMember.COLUMN_DATA.bind(ShimLoader.getShimClassLoader());
      } catch (final ReflectiveOperationException e) {
        throw new IllegalStateException(
            "this RAPIDS Accelerator lacks " + RapidsMember.COLUMN_DATA.signature(), e);
      }
    }
  }

  /**
   * Adds the partitions of a table, each with its number as slot.
   *
   * @param columns their rows are ordered by partition
   * @param firstRows first row of each partition, and the number of all rows
   * @return whether all columns are of known kinds; if not, the batch can only be cleared
   */
  static boolean add(
      final ColumnVector[] columns, final int[] firstRows, final RowHashBatch batch) {
    batch.beginTable(firstRows[1] - firstRows[0], columns.length, 0);
    final HashedColumns table = new HashedColumns(batch);
    for (final ColumnVector column : columns) {
      if (!table.column(column, 0)) {
        return false;
      }
    }
    for (int partition = 1; partition < firstRows.length - 1; partition++) {
      final int rows = firstRows[partition + 1] - firstRows[partition];
      if (rows > 0) {
        batch.addRows(firstRows[partition], rows, partition);
      }
    }
    return true;
  }

  private boolean column(final ColumnView column, final int depth) {
    if (added == RowHashBatch.MOST_COLUMNS) {
      return false;
    }
    added++;
    if (column.getRowCount() == 0) {
      batch.addFixed(1, 0, 0); // Items of empty lists: no row refers to them.
      return true;
    }
    final long mask = address(column.getValid());
    final DType type = column.getType();
    if (type.equals(DType.STRING)) {
      batch.addString(data(column), address(column.getOffsets()), mask);
      return true;
    }
    if (!type.isNestedType()) {
      final int width = type.getSizeInBytes();
      final long data = data(column);
      if (Integer.bitCount(width) != 1 || width > 16 || data == 0) {
        return false;
      }
      batch.addFixed(width, data, mask);
      return true;
    }
    if (depth == RowHashBatch.MOST_DEPTH) {
      return false;
    }
    if (type.equals(DType.LIST)) {
      batch.beginList(address(column.getOffsets()), mask);
    } else {
      batch.beginStruct(column.getNumChildren(), mask);
    }
    return children(column, depth + 1);
  }

  private boolean children(final ColumnView column, final int depth) {
    for (int i = 0; i < column.getNumChildren(); i++) {
      try (ColumnView child = column.getChildColumnView(i)) {
        if (!column(child, depth)) {
          return false;
        }
      }
    }
    return true;
  }

  /** Where the values or characters lie; 0 if there are none. */
  private static long data(final ColumnView column) {
    try {
      return (long) DataAddress.OF.invokeExact(column.getNativeView());
    } catch (final Throwable e) {
      throw RapidsClasses.rethrow(e);
    }
  }

  private static long address(final BaseDeviceMemoryBuffer buffer) {
    return buffer == null ? 0 : buffer.getAddress();
  }
}
