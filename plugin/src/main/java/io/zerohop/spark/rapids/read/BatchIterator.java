package io.zerohop.spark.rapids.read;

import ai.rapids.cudf.Table;
import io.zerohop.device.Transitions;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.rapids.api.ExchangeMetrics;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.task.FailureOutcome;
import io.zerohop.spark.task.ReduceTask;
import io.zerohop.spark.task.ReduceTask.ReadEnd;
import io.zerohop.spark.task.TrackedBlocks;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NoSuchElementException;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.jspecify.annotations.Nullable;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;

/**
 * The batches of one reduce task: the blocks of as many windows as make up a batch are gathered
 * into one table. What cannot be put together so is concatenated by cudf. Whoever takes a batch
 * closes it.
 */
public final class BatchIterator extends AbstractIterator<Product2<Integer, ColumnarBatch>>
    implements AutoCloseable {
  /** The steps of a reader. */
  enum State {
    /** There may be blocks that were not fetched. */
    FETCHING,

    /** Nothing more is fetched; what is there is handed out. */
    FETCHED,

    /** All was handed out, or the task has ended, and nothing is held any more. */
    RELEASED;

    static final Transitions<State> TRANSITIONS =
        new Transitions<>(Map.of(FETCHING, Set.of(FETCHED), FETCHED, Set.of(RELEASED)));
  }

  private static final long MIN_BATCH_BYTES = 4L << 20;

  /** Each holds a lease. */
  private static final int MAX_WINDOWS = 32;

  /** Of host memory in which tables wait that came through the host. */
  private static final long MAX_STAGED_BYTES = 64L << 20;

  private final RapidsClasses rapids;
  private final BlockFetcher fetcher;
  private final TableLoader loader;
  private final DataType[] types;
  private final ReduceTask task;
  private final ExchangeMetrics exchange;
  private final ReadEnd end;
  private final List<Table> gathered = new ArrayList<>();
  private long mostBytes;
  private long rowsWithoutColumns;
  private int partition;

  /** Whether batches are handed out as they were gathered. */
  private boolean oneByOne;

  /** Held by the thread that works on tables. */
  private final ReentrantLock lock = new ReentrantLock();

  /** Changed under the lock. */
  private State state = State.FETCHING;

  /** Whether the task has ended; who works on tables meanwhile releases them. */
  private volatile boolean closed;

  /** What is handed out next, once it is there. */
  private @Nullable ColumnarBatch next;

  public BatchIterator(
      final RapidsClasses rapids,
      final BlockFetcher fetcher,
      final TableLoader loader,
      final DataType[] types,
      final long batchBytes,
      final ReduceTask task,
      final ExchangeMetrics exchange,
      final ReadEnd end) {
    this.rapids = rapids;
    this.fetcher = fetcher;
    this.loader = loader;
    this.types = types;
    this.mostBytes = batchBytes;
    this.task = task;
    this.exchange = exchange;
    this.end = end;
  }

  @Override
  public boolean hasNext() {
    if (next == null) {
      lock.lock();
      try {
        if (closed) {
          throw new IllegalStateException("the reader's task has ended");
        }
        if (state != State.RELEASED) {
          next = load();
        }
      } catch (final ZerohopException e) {
        throw FailureOutcome.raise(e);
      } finally {
        lock.unlock();
        if (closed) {
          releaseIfIdle(); // Who closed it could not wait.
        }
      }
    }
    return next != null;
  }

  @Override
  public Product2<Integer, ColumnarBatch> next() {
    final ColumnarBatch batch = hasNext() ? next : null;
    if (batch == null) {
      throw new NoSuchElementException();
    }
    next = null;
    task.metrics().incRecordsRead(batch.numRows());
    return new Tuple2<>(partition, batch);
  }

  /** The next batch; null at the end. */
  private @Nullable ColumnarBatch load() {
    while (gathered.isEmpty()) {
      if (loader.isEmpty()) {
        timed(this::fetchBatch);
        if (loader.isEmpty()) {
          if (state == State.FETCHED || rowsWithoutColumns > 0) {
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
    if (rowsWithoutColumns > 0) {
      final int rows = (int) Math.min(Integer.MAX_VALUE, rowsWithoutColumns);
      rowsWithoutColumns -= rows;
      rapids.acquireSemaphore(task.context());
      return new ColumnarBatch(new ColumnVector[0], rows);
    }
    task.context().taskMetrics().mergeShuffleReadMetrics();
    release();
    return null;
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
    fetcher.releaseWindows();
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
    for (int windows = 0; windows < MAX_WINDOWS && state == State.FETCHING; windows++) {
      if (loader.bytes() >= mostBytes || loader.stagedBytes() >= MAX_STAGED_BYTES) {
        return;
      }
      fetchWindow();
    }
  }

  private void fetchWindow() {
    do {
      if (!fetcher.next()) {
        fetched();
        return;
      }
      final FetchedBlock block = fetcher.block();
      partition = block.block().partition();
      try {
        rowsWithoutColumns += loader.add(block);
      } catch (final IOException e) {
        throw damaged(block, e);
      }
    } while (!fetcher.endsWindow());
  }

  private void fetched() {
    if (state == State.FETCHING) {
      state = State.TRANSITIONS.go(state, State.FETCHED, "a reader of tables");
    }
  }

  private static BlockFetchException damaged(final FetchedBlock damaged, final IOException cause) {
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
    while (!gathered.isEmpty()) {
      gathered.remove(gathered.size() - 1).close();
    }
  }

  /**
   * Ends the fetch and frees what was not handed out; called at the task's end, which does not wait
   * for other threads that the task has started. If one of them is at work here it does both when
   * it is done: until then the GPU may read what its leases keep.
   */
  @Override
  public void close() {
    closed = true;
    if (!releaseIfIdle()) {
      TrackedBlocks.check(fetcher, task.context());
    }
  }

  /** The working thread checks whether this is closed after it has released the lock. */
  private boolean releaseIfIdle() {
    if (!lock.tryLock()) {
      return false;
    }
    try {
      release();
    } finally {
      lock.unlock();
    }
    return true;
  }

  private void release() {
    if (state == State.RELEASED) {
      return;
    }
    fetched();
    try {
      closeGathered();
    } finally {
      try {
        loader.close();
        TrackedBlocks.finish(fetcher, task.context()); // Not if the GPU does not come to an end.
      } finally {
        if (next != null) {
          next.close();
          next = null;
        }
        task.pathMetrics().end();
      }
    }
    state = State.TRANSITIONS.go(state, State.RELEASED, "a reader of tables");
    end.done();
  }
}
