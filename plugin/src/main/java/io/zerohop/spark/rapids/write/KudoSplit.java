package io.zerohop.spark.rapids.write;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.DeviceMemoryBuffer;
import ai.rapids.cudf.HostMemoryBuffer;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.jni.kudo.KudoGpuSerializer;
import io.zerohop.device.Message;
import io.zerohop.spark.log.UnusableException;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.format.KudoLayout;
import java.util.Arrays;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.unsafe.Platform;
import scala.Tuple2;

/**
 * Splits a batch that RAPIDS has partitioned by RAPIDS' GPU serializer (Kudo). All partitions go
 * into one buffer as self-describing blocks, by a few launches and two allocations for any number
 * of partitions. RAPIDS' split makes a table of its own of each, with an allocation and metadata on
 * the host.
 */
public final class KudoSplit {
  private static final String REMEDY =
      "set spark.zerohop.rapids.kudo.enabled=false and report this";

  /** What a map output says of the bytes of a batch. */
  private static final long MAX_BYTES = Integer.MAX_VALUE;

  private KudoSplit() {}

  /**
   * Does so; waits for the GPU, since the blocks' ends are needed on the host, and lets others have
   * it then.
   *
   * @param rows of the batch
   * @param starts first row of each partition; may have more
   * @param partitions how many there are
   * @param columns RAPIDS' columns, ordered by partition; closed unless null is returned
   * @return the batch, as RAPIDS returns its slices; null if it is not one for this
   */
  public static Tuple2<ColumnarBatch, Object>[] split(
      final int rows, final int[] starts, final int partitions, final Object[] columns) {
    if (rows == 0 || columns.length == 0) {
      return null;
    }
    final RapidsClasses rapids = RapidsClasses.get();
    boolean refused = false;
    final KudoBatch batch;
    try {
      final int[] firstRows = Arrays.copyOf(starts, partitions + 1);
      firstRows[partitions] = rows;
      batch = split(rapids, firstRows, columns);
      refused = batch == null;
    } finally {
      if (!refused) {
        close(columns);
      }
    }
    if (refused) {
      return null;
    }
    rapids.releaseSemaphore(TaskContext.get());
    @SuppressWarnings("unchecked")
    final Tuple2<ColumnarBatch, Object>[] one =
        (Tuple2<ColumnarBatch, Object>[]) new Tuple2<?, ?>[] {new Tuple2<>(batch, 0)};
    return one;
  }

  private static KudoBatch split(
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
    boolean kept = false;
    try (DeviceMemoryBuffer offsets = split[1]) {
      if (split[0].getLength() > MAX_BYTES) {
        return null;
      }
      final KudoLayout layout =
          new KudoLayout(firstRows, starts(rapids, offsets, partitions, split[0].getLength()));
      final KudoBatch batch =
          new KudoBatch(split[0], layout, KudoSizes.of(plain).packed(layout), plain);
      kept = true;
      return batch;
    } finally {
      if (!kept) {
        split[0].close();
      }
    }
  }

  /** Where each block begins, and where the last one ends. */
  private static int[] starts(
      final RapidsClasses rapids,
      final DeviceMemoryBuffer offsets,
      final int partitions,
      final long length) {
    final long bytes = Long.BYTES * (partitions + 1L);
    if (offsets.getLength() != bytes) {
      throw new UnusableException(
          Message.of(
                  "RAPIDS' serializer gave "
                      + offsets.getLength()
                      + " bytes of offsets for "
                      + partitions
                      + " partitions")
              .remedy(REMEDY));
    }
    final int[] starts = new int[partitions + 1];
    try (HostMemoryBuffer copy = rapids.withRetry(() -> HostMemoryBuffer.allocate(bytes))) {
      copy.copyFromDeviceBuffer(offsets);
      for (int i = 0; i <= partitions; i++) {
        starts[i] = (int) Platform.getLong(null, copy.getAddress() + (long) Long.BYTES * i);
        if (starts[i] < (i == 0 ? 0 : starts[i - 1]) || starts[i] > length) {
          throw new UnusableException(
              Message.of("RAPIDS' serializer gave blocks that overlap").remedy(REMEDY));
        }
      }
    }
    return starts;
  }

  private static void close(final Object[] columns) {
    for (final Object column : columns) {
      ((org.apache.spark.sql.vectorized.ColumnVector) column).close();
    }
  }
}
