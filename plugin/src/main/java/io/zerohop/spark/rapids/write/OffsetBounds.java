package io.zerohop.spark.rapids.write;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.HostBuffer;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.spark.rapids.api.TaskStream;
import io.zerohop.spark.rapids.format.PackedColumns;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.unsafe.Platform;

/**
 * Brings the first and the last offset of every column of strings or lists to the host, all of a
 * batch by one launch: cudf's metadata does not say how many characters a column has, and who puts
 * tables together has to know it before. For one task's thread; owns its memory.
 */
final class OffsetBounds implements AutoCloseable {
  private static final int BOUND_BYTES = Integer.BYTES;

  private final ShuffleNode node;
  private final TaskStream stream;
  private final Duration limit;
  private HostBuffer buffer;

  /**
   * @param stream which is closed before this
   */
  OffsetBounds(final ShuffleNode node, final TaskStream stream, final Duration limit) {
    this.node = node;
    this.stream = stream;
    this.limit = limit;
  }

  private record Wanted(TableBatch.Pending table, PackedColumns columns) {}

  /** Tells every table of the batch its bounds; what cannot be known stays unknown. */
  void read(final TableBatch batch) {
    final List<Wanted> wanted = new ArrayList<>();
    final int[] bounds = {0};
    batch.forEach(
        (table, partition) -> {
          final PackedColumns columns = PackedColumns.parse(table.metadata());
          if (columns != null && !columns.bounded().isEmpty() && table.address() != 0) {
            wanted.add(new Wanted(table, columns));
            bounds[0] += 2 * columns.bounded().size();
          }
        });
    if (wanted.isEmpty()) {
      return;
    }
    final long from = copy(wanted, bounds[0]);
    long at = from;
    for (final Wanted next : wanted) {
      final int[] read = new int[2 * next.columns.bounded().size()];
      for (int i = 0; i < read.length; i++, at += BOUND_BYTES) {
        read[i] = Platform.getInt(null, at);
      }
      next.table.bounds(read);
    }
  }

  private long copy(final List<Wanted> wanted, final int bounds) {
    final long bytes = (long) bounds * BOUND_BYTES;
    if (buffer == null || buffer.bytes() < bytes) {
      close();
      buffer = node.gpuHostBuffer(Math.max(bytes, 64 << 10));
    }
    final CopyBatch batch = stream.get().newBatch();
    long to = buffer.address();
    for (final Wanted next : wanted) {
      for (final int entry : next.columns.bounded()) {
        final long offsets = next.table.address() + next.columns.data(entry + 1);
        batch.add(offsets, to, BOUND_BYTES);
        batch.add(
            offsets + (long) BOUND_BYTES * next.columns.rows(entry), to + BOUND_BYTES, BOUND_BYTES);
        to += 2 * BOUND_BYTES;
      }
    }
    stream.get().submit(batch);
    stream.get().synchronize(limit);
    return buffer.address();
  }

  @Override
  public void close() {
    if (buffer != null) {
      buffer.close();
      buffer = null;
    }
  }
}
