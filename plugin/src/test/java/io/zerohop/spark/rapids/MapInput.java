package io.zerohop.spark.rapids;

import ai.rapids.cudf.ContiguousTable;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.GpuColumnVector;
import com.nvidia.spark.rapids.GpuPackedTableColumn;
import io.zerohop.spark.rapids.write.KudoBatch;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;

/**
 * What RAPIDS hands a map task's writer: table after table, split when it is asked for, and closed
 * when the writer asks for what comes behind it.
 */
final class MapInput extends AbstractIterator<Product2<Integer, ColumnarBatch>>
    implements AutoCloseable {
  /** In which form batches are handed out. */
  enum Form {
    KUDO,
    PACKED,
    ROWS_ONLY,

    /** As RAPIDS hands none to a GPU shuffle. */
    UNSPLIT
  }

  /**
   * A batch ordered by partition.
   *
   * @param starts first row of each partition
   */
  record Batch(Table table, int[] starts) {}

  private final Form form;
  private final DataType[] types;
  private final Deque<Batch> batches;
  private final Deque<Product2<Integer, ColumnarBatch>> ready = new ArrayDeque<>();
  private final List<ColumnarBatch> handedOut = new ArrayList<>();
  private Runnable atTheEnd = () -> {};

  /**
   * @param batches owned from now on
   */
  MapInput(final Form form, final DataType[] types, final List<Batch> batches) {
    this.form = form;
    this.types = types;
    this.batches = new ArrayDeque<>(batches);
  }

  /** Does something when everything was handed out. */
  void atTheEnd(final Runnable step) {
    atTheEnd = step;
  }

  @Override
  public boolean hasNext() {
    while (ready.isEmpty() && !batches.isEmpty()) {
      closeHandedOut();
      try (Table table = batches.peek().table()) {
        split(table, batches.poll().starts());
      }
    }
    if (ready.isEmpty()) {
      atTheEnd.run();
    }
    return !ready.isEmpty();
  }

  private void split(final Table table, final int[] starts) {
    final int rows = (int) table.getRowCount();
    if (form == Form.KUDO) {
      final ColumnarBatch columns = GpuColumnVector.from(table, types);
      final Object[] gpu = new Object[types.length];
      Arrays.setAll(gpu, columns::column);
      final Tuple2<ColumnarBatch, Object>[] split =
          KudoBatch.split(rows, starts, starts.length, gpu);
      if (split == null) {
        columns.close();
        return;
      }
      ready.add(new Tuple2<>(0, split[0]._1()));
      return;
    }
    if (form == Form.UNSPLIT) {
      ready.add(new Tuple2<>(0, GpuColumnVector.from(table, types)));
      return;
    }
    final int[] splits = Arrays.copyOfRange(starts, 1, starts.length);
    final ContiguousTable[] tables = table.contiguousSplit(splits);
    for (int i = 0; i < tables.length; i++) {
      if (tables[i].getRowCount() == 0) {
        tables[i].close();
      } else if (form == Form.PACKED) {
        ready.add(new Tuple2<>(i, GpuPackedTableColumn.from(tables[i])));
      } else {
        final int count = (int) tables[i].getRowCount();
        ready.add(new Tuple2<>(i, new ColumnarBatch(new ColumnVector[0], count)));
        tables[i].close();
      }
    }
  }

  @Override
  public Product2<Integer, ColumnarBatch> next() {
    final Product2<Integer, ColumnarBatch> record = ready.remove();
    if (form != Form.KUDO || ready.isEmpty() && !batches.isEmpty()) {
      handedOut.add(record._2());
    }
    return record;
  }

  private void closeHandedOut() {
    handedOut.forEach(ColumnarBatch::close);
    handedOut.clear();
  }

  /** Ends it with its task. */
  @Override
  public void close() {
    closeHandedOut();
    ready.forEach(record -> record._2().close());
    ready.clear();
    batches.forEach(batch -> batch.table().close());
    batches.clear();
  }
}
