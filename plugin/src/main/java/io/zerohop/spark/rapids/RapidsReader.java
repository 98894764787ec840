package io.zerohop.spark.rapids;

import ai.rapids.cudf.Table;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.rapids.api.ExchangeMetrics;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.format.TableHeader;
import io.zerohop.spark.rapids.read.TableGather;
import io.zerohop.spark.rapids.read.TableLoader;
import io.zerohop.spark.task.FailureOutcome;
import io.zerohop.spark.task.ReduceTask;
import io.zerohop.spark.task.ReduceTask.ReadEnd;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.concurrent.atomic.AtomicReference;
import org.agrona.CloseHelper;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.jspecify.annotations.Nullable;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * Reads the blocks of one reduce task of RAPIDS into batches on the GPU. RAPIDS combines and sorts
 * by itself, so there is nothing else to do.
 *
 * @param <K> the partition, an Integer
 * @param <C> a ColumnarBatch
 */
public final class RapidsReader<K, C> implements ShuffleReader<K, C> {
  private final ShuffleDependency<K, ?, C> dependency;
  private final ReduceTask task;
  private final Fetches fetches;
  private final @Nullable ShuffleNode gpu;
  private final Duration limit;
  private final FallbackTransport staged;
  private final long batchBytes;

  /**
   * A reader.
   *
   * @param fetches of this executor
   * @param gpu this executor's node, if it has a GPU; absent if RAPIDS alone uses the GPU
   * @param limit of one gather on the GPU
   * @param batchBytes how large the batches that are handed out should be
   */
  public RapidsReader(
      final ShuffleDependency<K, ?, C> dependency,
      final ReduceTask task,
      final Fetches fetches,
      final @Nullable ShuffleNode gpu,
      final Duration limit,
      final FallbackTransport staged,
      final long batchBytes) {
    this.dependency = dependency;
    this.task = task;
    this.fetches = fetches;
    this.gpu = gpu;
    this.limit = limit;
    this.staged = staged;
    this.batchBytes = batchBytes;
  }

  @Override
  @SuppressWarnings("unchecked")
  public Iterator<Product2<K, C>> read() {
    final RapidsClasses rapids = RapidsClasses.get();
    final ExchangeMetrics exchange = ExchangeMetrics.of(dependency);
    final DataType[] types = rapids.sparkTypes(dependency);
    final Fetch fetch =
        fetches.begin(
            task.sources(TableHeader.typicalBytes(types.length)),
            staged,
            task.pathMetrics(),
            gpu == null ? ReadSide.HOST : ReadSide.DEVICE,
            () -> task.context().isInterrupted() || task.context().isCompleted());
    final TableLoader loader =
        new TableLoader(rapids, TableGather.begin(gpu, limit), types, fetch::checkIntact, exchange);
    final Batches batches = new Batches(rapids, fetch, loader, types, batchBytes, task, exchange);
    fetch.releasing(loader::close, batches::release);
    batches.end.begin(task, fetch, () -> {});
    return (Iterator<Product2<K, C>>) (Iterator<?>) batches;
  }

  /**
   * The batches of one reduce task: the blocks of as many windows as make up a batch are gathered
   * into one table. What cannot be put together so is concatenated by cudf. Whoever takes a batch
   * closes it; the fetch releases the others. If another thread is at work here when the task ends,
   * that one does so when it is done: until then the GPU may read what leases keep.
   */
  private static final class Batches extends AbstractIterator<Product2<Integer, ColumnarBatch>> {
    private static final long MIN_BATCH_BYTES = 4L << 20;

    /** Each holds a lease. */
    private static final int MAX_WINDOWS = 32;

    /** Of host memory in which tables wait that came through the host. */
    private static final long MAX_STAGED_BYTES = 64L << 20;

    private final RapidsClasses rapids;
    private final Fetch fetch;
    private final TableLoader loader;
    private final DataType[] types;
    private final ReduceTask task;
    private final ExchangeMetrics exchange;
    private final ReadEnd end = new ReadEnd();
    private final List<Table> gathered = new ArrayList<>();
    private long mostBytes;
    private long rowsWithoutColumns;
    private int partition;

    /** Whether nothing more is fetched; what is there is handed out. */
    private boolean fetched;

    /** Whether there is no other batch. */
    private boolean isLast;

    /** Whether all was handed out. */
    private boolean ended;

    /** Whether batches are handed out as they were gathered. */
    private boolean oneByOne;

    /** What is handed out next, once it is there. Whoever takes it out closes it. */
    private final AtomicReference<@Nullable ColumnarBatch> next = new AtomicReference<>();

    Batches(
        final RapidsClasses rapids,
        final Fetch fetch,
        final TableLoader loader,
        final DataType[] types,
        final long batchBytes,
        final ReduceTask task,
        final ExchangeMetrics exchange) {
      this.rapids = rapids;
      this.fetch = fetch;
      this.loader = loader;
      this.types = types;
      this.mostBytes = batchBytes;
      this.task = task;
      this.exchange = exchange;
    }

    @Override
    public boolean hasNext() {
      if (next.get() == null && !ended) {
        try {
          fetch.during(this::advance);
        } catch (final ZerohopException e) {
          throw FailureOutcome.raise(e);
        }
        if (isLast) {
          end.done();
          ended = true;
        }
      }
      return !ended;
    }

    private void advance() {
      final ColumnarBatch batch = load();
      next.set(batch);
      isLast = batch == null;
    }

    @Override
    public Product2<Integer, ColumnarBatch> next() {
      final ColumnarBatch batch = hasNext() ? next.getAndSet(null) : null;
      if (batch == null) {
        throw new NoSuchElementException("all was read, or the task has ended");
      }
      task.metrics().incRecordsRead(batch.numRows());
      return new Tuple2<>(partition, batch);
    }

    /** The next batch; null at the end. */
    private @Nullable ColumnarBatch load() {
      while (gathered.isEmpty()) {
        if (loader.isEmpty()) {
          timed(this::fetchBatch);
          if (loader.isEmpty()) {
            if (fetched || rowsWithoutColumns > 0) {
              break;
            }
            continue;
          }
        }
        rapids.acquireSemaphore(task.context());
        try {
          timed(() -> loader.gather(mostBytes, gathered));
        } catch (final RuntimeException e) {
          shrink(e);
        }
      }
      if (!gathered.isEmpty()) {
        return concatenated();
      }
      if (rowsWithoutColumns == 0) {
        return null;
      }
      final int rows = (int) Math.min(Integer.MAX_VALUE, rowsWithoutColumns);
      rowsWithoutColumns -= rows;
      rapids.acquireSemaphore(task.context());
      return new ColumnarBatch(new ColumnVector[0], rows);
    }

    /** RAPIDS could not make enough room: smaller batches from now on, down to a few megabytes. */
    private void shrink(final RuntimeException failure) {
      if (!isSplit(failure) || mostBytes <= MIN_BATCH_BYTES) {
        throw failure;
      }
      mostBytes /= 2;
    }

    private static boolean isSplit(final RuntimeException failure) {
      return failure.getClass().getSimpleName().equals("GpuSplitAndRetryOOM");
    }

    /** Ends the leases on what was gathered, when nothing of it is read any more. */
    private void letGo() {
      loader.finish();
      fetch.releaseWindows();
    }

    /** What a task waits for until it has blocks, apart from its turn at the GPU. */
    private void timed(final Runnable step) {
      final long begin = System.nanoTime();
      try {
        step.run();
      } finally {
        exchange.readTime(System.nanoTime() - begin);
      }
    }

    /** Fetches windows until they make up a batch, or hold many leases or much pinned memory. */
    private void fetchBatch() {
      letGo();
      for (int windows = 0; windows < MAX_WINDOWS && !fetched; windows++) {
        if (loader.bytes() >= mostBytes || loader.stagedBytes() >= MAX_STAGED_BYTES) {
          return;
        }
        fetchWindow();
      }
    }

    private void fetchWindow() {
      do {
        if (!fetch.next()) {
          fetched = true;
          return;
        }
        final FetchedBlock block = fetch.block();
        partition = block.block().partition();
        try {
          rowsWithoutColumns += loader.add(block);
        } catch (final IOException e) {
          throw damaged(block, e);
        }
      } while (!fetch.endsWindow());
    }

    private static BlockFetchException damaged(
        final FetchedBlock damaged, final IOException cause) {
      final BlockSource owner = damaged.source();
      return new BlockFetchException(
          damaged.block(),
          owner,
          SparkCode.TABLES_DAMAGED
              .says("the tables of a block are damaged")
              .at(damaged.block() + " of executor " + owner.executorId())
              .because(String.valueOf(cause.getMessage())),
          cause);
    }

    private ColumnarBatch concatenated() {
      if (gathered.size() > 1 && !oneByOne) {
        final Table[] tables = gathered.toArray(new Table[0]);
        try (Table whole = rapids.withRetry(() -> Table.concatenate(tables))) {
          final ColumnarBatch batch = rapids.toBatch(whole, types);
          closeGathered();
          return batch;
        } catch (final RuntimeException e) {
          if (!isSplit(e)) {
            throw e;
          }
          oneByOne = true; // There is no room for all of them twice.
        }
      }
      try (Table first = gathered.remove(0)) {
        return rapids.toBatch(first, types);
      }
    }

    private void closeGathered() {
      final List<Table> tables = List.copyOf(gathered);
      gathered.clear();
      CloseHelper.closeAll(tables);
    }

    /** Frees what was not handed out. Idempotent. */
    private void release() {
      CloseHelper.closeAll(this::closeGathered, next.getAndSet(null));
    }
  }
}
