package io.zerohop.spark.rapids.write;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.DType;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.jni.kudo.KudoGpuSerializer;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.format.KudoLayout;
import io.zerohop.spark.rapids.format.KudoLayout.KudoBlock;
import java.util.Arrays;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.jspecify.annotations.Nullable;
import scala.Tuple2;

/**
 * Splits a batch that RAPIDS has partitioned by RAPIDS' GPU serializer (Kudo). All partitions go
 * into one buffer as self-describing blocks, by a few launches and two allocations for any number
 * of partitions. RAPIDS' split makes a table of its own of each, with an allocation and metadata on
 * the host.
 */
public final class KudoSplit {
  /** What a map output says of the bytes of a batch. */
  private static final long MAX_BYTES = Integer.MAX_VALUE;

  private KudoSplit() {}

  /**
   * Does so. Does not wait for the GPU; {@link KudoBatch#open} does.
   *
   * @param rows of the batch
   * @param starts first row of each partition; may have more
   * @param partitions how many there are
   * @param columns RAPIDS' columns, ordered by partition; closed unless null is returned
   * @return the batch, as RAPIDS returns its slices; null if it is not one for this
   */
  public static Tuple2<ColumnarBatch, Object> @Nullable [] split(
      final int rows, final int[] starts, final int partitions, final Object[] columns) {
    if (rows == 0 || columns.length == 0) {
      return null;
    }
    boolean refused = false;
    final KudoBatch batch;
    try {
      final int[] firstRows = Arrays.copyOf(starts, partitions + 1);
      firstRows[partitions] = rows;
      batch = split(RapidsClasses.get(), firstRows, columns);
      refused = batch == null;
    } finally {
      if (!refused) {
        close(columns);
      }
    }
    if (refused) {
      return null;
    }
    @SuppressWarnings("unchecked")
    final Tuple2<ColumnarBatch, Object>[] one =
        (Tuple2<ColumnarBatch, Object>[]) new Tuple2<?, ?>[] {new Tuple2<>(batch, 0)};
    return one;
  }

  private static @Nullable KudoBatch split(
      final RapidsClasses rapids, final int[] firstRows, final Object[] columns) {
    final ColumnVector[] plain = new ColumnVector[columns.length];
    for (int i = 0; i < columns.length; i++) {
      plain[i] = rapids.plainColumn(columns[i]);
      plain[i].getNullCount(); // The serializer takes it as known.
    }
    final int partitions = firstRows.length - 1;
    final DeviceMemoryBuffer[] split;
    try (Table table = new Table(plain)) {
      final int[] splits = Arrays.copyOfRange(firstRows, 1, partitions);
      split = rapids.withRetry(() -> KudoGpuSerializer.splitAndSerializeToDevice(table, splits));
    }
    KudoBatch batch = null;
    try {
      if (split[0].getLength() <= MAX_BYTES) {
        batch = new KudoBatch(split[0], split[1], firstRows, plain);
      }
      return batch;
    } finally {
      if (batch == null) {
        split[0].close();
        split[1].close();
      }
    }
  }

  private static void close(final Object[] columns) {
    for (final Object column : columns) {
      ((org.apache.spark.sql.vectorized.ColumnVector) column).close();
    }
  }

  /**
   * Estimates the sizes of partitions as cudf's packed tables, from their rows and their sizes as
   * Kudo blocks. Map statuses and the metric {@code data size} say this, whatever the form, so that
   * plans are those of RAPIDS' own manager. Exact without strings and nested columns: each buffer
   * of a packed table takes a multiple of 64 bytes. Characters are what a block has beside its
   * other parts, and for nested columns half a multiple a buffer is added.
   *
   * @param widths bytes of a value of each column of fixed width
   * @param masks how many columns have a mask of nulls
   * @param strings how many are strings
   * @param nested how many are neither
   */
  public record KudoSizes(int[] widths, int masks, int strings, int nested) {
    private static final int ALIGNMENT = 64;
    private static final int BITS = Byte.SIZE;

    /** Of the header of a block that is always there; behind it is a bit for each column. */
    private static final int HEADER_BYTES = KudoBlock.FIXED_BYTES;

    /** Of columns; their counts of nulls are known. */
    public static KudoSizes of(final ColumnVector[] columns) {
      final int[] widths = new int[columns.length];
      int fixed = 0;
      int masks = 0;
      int strings = 0;
      int nested = 0;
      for (final ColumnVector column : columns) {
        final DType type = column.getType();
        if (type.isNestedType()) {
          nested++;
        } else if (type.equals(DType.STRING)) {
          strings++;
        } else {
          widths[fixed++] = type.getSizeInBytes();
        }
        if (column.hasValidityVector()) {
          masks++;
        }
      }
      return new KudoSizes(java.util.Arrays.copyOf(widths, fixed), masks, strings, nested);
    }

    /** Of each partition. */
    public long[] packed(final KudoLayout layout) {
      final long[] sizes = new long[layout.partitions()];
      for (int partition = 0; partition < sizes.length; partition++) {
        final int rows = layout.rows(partition);
        sizes[partition] = rows == 0 ? 0 : packed(rows, layout.bytes(partition));
      }
      return sizes;
    }

    /** Of so many rows, and a block of so many bytes. */
    private long packed(final long rows, final long block) {
      final long mask = (rows + BITS - 1) / BITS;
      final long offsets = Integer.BYTES * (rows + 1);
      final int columns = widths.length + strings + nested;
      long rest = block - HEADER_BYTES - (columns + BITS - 1) / BITS - masks * mask;
      long packed = masks * padded(mask);
      for (final int width : widths) {
        rest -= rows * width;
        packed += padded(rows * width);
      }
      rest = Math.max(0, rest - strings * offsets);
      packed += strings * padded(offsets);
      if (nested > 0) {
        return packed + rest + (strings + 2L * nested) * ALIGNMENT / 2;
      }
      return strings == 0 ? packed : packed + padded(rest) + (strings - 1L) * ALIGNMENT / 2;
    }

    private static long padded(final long bytes) {
      return (bytes + ALIGNMENT - 1) & -ALIGNMENT;
    }
  }
}
