package io.zerohop.spark.rapids;

import ai.rapids.cudf.Table;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.Block;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.fetch.BlockSource;
import io.zerohop.spark.FailureOutcome;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;

/**
 * The batches of one reduce task: blocks of as many windows as make up a batch are gathered at
 * once, into one table. What cannot be put together so is concatenated by cudf. Whoever takes a
 * batch closes it.
 */
final class BatchIterator extends AbstractIterator<Product2<Integer, ColumnarBatch>>
    implements AutoCloseable {
  private static final long LEAST_BATCH_BYTES = 4L << 20;

  /** Of pinned host memory in which tables wait that came through the host. */
  private static final long MOST_STAGED_BYTES = 64L << 20;

  private final RapidsClasses rapids;
  private final BlockFetcher fetcher;
  private final List<BlockSource> sources;
  private final TableLanding landing;
  private final DataType[] types;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final List<Table> gathered = new ArrayList<>();
  private long mostBytes;
  private long rowsWithoutColumns;
  private int partition;
  private boolean finished;
  private ColumnarBatch next;

  BatchIterator(
      final RapidsClasses rapids,
      final BlockFetcher fetcher,
      final List<BlockSource> sources,
      final TableLanding landing,
      final DataType[] types,
      final long batchBytes,
      final TaskContext context,
      final ShuffleReadMetricsReporter metrics) {
    this.rapids = rapids;
    this.fetcher = fetcher;
    this.sources = sources;
    this.landing = landing;
    this.types = types;
    this.mostBytes = batchBytes;
    this.context = context;
    this.metrics = metrics;
  }

  @Override
  public boolean hasNext() {
    if (next == null) {
      try {
        next = load();
      } catch (final ZerohopException e) {
        throw FailureOutcome.raise(e);
      }
    }
    return next != null;
  }

  @Override
  public Product2<Integer, ColumnarBatch> next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    final ColumnarBatch batch = next;
    next = null;
    metrics.incRecordsRead(batch.numRows());
    return new Tuple2<>(partition, batch);
  }

  /** The next batch; null at the end. */
  private ColumnarBatch load() {
    while (gathered.isEmpty()) {
      if (landing.isEmpty()) {
        letGo();
        while (!finished
            && landing.bytes() < mostBytes
            && landing.stagedBytes() < MOST_STAGED_BYTES) {
          fetchWindow();
        }
        if (landing.isEmpty()) {
          break;
        }
      }
      rapids.acquireSemaphore(context);
      try {
        landing.gather(mostBytes, gathered);
      } catch (final RuntimeException e) {
        shrink(e);
      }
    }
    if (!gathered.isEmpty()) {
      return concatenated();
    }
    if (rowsWithoutColumns > 0) {
      final int rows = (int) Math.min(Integer.MAX_VALUE, rowsWithoutColumns);
      rowsWithoutColumns -= rows;
      return new ColumnarBatch(new ColumnVector[0], rows);
    }
    context.taskMetrics().mergeShuffleReadMetrics();
    return null;
  }

  /** RAPIDS could not make enough room: smaller batches from now on, down to a few megabytes. */
  private void shrink(final RuntimeException failure) {
    final boolean split = failure.getClass().getSimpleName().equals("GpuSplitAndRetryOOM");
    if (!split || mostBytes <= LEAST_BATCH_BYTES) {
      throw failure;
    }
    mostBytes /= 2;
  }

  /** Ends the leases on what was gathered, when nothing of it is read any more. */
  private void letGo() {
    landing.finish();
    fetcher.releaseWindows();
  }

  private void fetchWindow() {
    do {
      if (!fetcher.next()) {
        finished = true;
        return;
      }
      final Block block = fetcher.block().block();
      partition = block.partition();
      try {
        rowsWithoutColumns += landing.add(fetcher.block());
      } catch (final IOException e) {
        throw damaged(block, e);
      }
    } while (!fetcher.endsWindow());
  }

  private BlockFetchException damaged(final Block block, final IOException cause) {
    BlockSource owner = null;
    for (final BlockSource source : sources) {
      if (owner == null || source.blocks().contains(block)) {
        owner = source;
      }
    }
    return new BlockFetchException(
        block,
        owner,
        block + " of executor " + owner.executorId() + ": " + cause.getMessage(),
        cause);
  }

  private ColumnarBatch concatenated() {
    try {
      if (gathered.size() == 1) {
        return rapids.toBatch(gathered.get(0), types);
      }
      final Table[] tables = gathered.toArray(new Table[0]);
      try (Table whole = rapids.withRetry(() -> Table.concatenate(tables))) {
        return rapids.toBatch(whole, types);
      }
    } finally {
      closeGathered();
    }
  }

  private void closeGathered() {
    gathered.forEach(Table::close);
    gathered.clear();
  }

  /** Frees what was not handed out; called at the task's end. */
  @Override
  public void close() {
    finished = true;
    closeGathered();
    landing.close();
    if (next != null) {
      next.close();
      next = null;
    }
  }
}
