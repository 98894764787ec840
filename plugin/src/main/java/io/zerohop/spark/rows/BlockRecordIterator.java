package io.zerohop.spark.rows;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.fetch.FetchedBlock;
import io.zerohop.spark.log.SparkCode;
import io.zerohop.spark.task.FailureOutcome;
import java.util.NoSuchElementException;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import scala.Product2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;

/**
 * The records of all blocks of a reader, one block after the other. Counts records and lets a
 * killed task go at every block and every {@value #RECORDS_BETWEEN_CHECKS} records. Belongs to one
 * task.
 */
final class BlockRecordIterator extends AbstractIterator<Product2<?, ?>> {
  private static final int RECORDS_BETWEEN_CHECKS = 1024;

  private final BlockFetcher fetcher;
  private final BlockRecords records;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;
  private final Runnable atEnd;
  private Iterator<? extends Product2<?, ?>> current = Iterator.empty();
  private long uncounted;
  private boolean ended;

  BlockRecordIterator(
      final BlockFetcher fetcher,
      final BlockRecords records,
      final TaskContext context,
      final ShuffleReadMetricsReporter metrics,
      final Runnable atEnd) {
    this.fetcher = fetcher;
    this.records = records;
    this.context = context;
    this.metrics = metrics;
    this.atEnd = atEnd;
  }

  @Override
  public boolean hasNext() {
    try {
      while (!current.hasNext()) {
        if (ended || !nextBlock()) {
          return false;
        }
      }
      return true;
    } catch (final ZerohopException e) {
      throw FailureOutcome.raise(located(e));
    }
  }

  private boolean nextBlock() {
    count();
    context.killTaskIfInterrupted();
    if (fetcher.next()) {
      current = records.of(fetcher.block());
      return true;
    }
    ended = true;
    current = Iterator.empty();
    atEnd.run();
    return false;
  }

  @Override
  public Product2<?, ?> next() {
    if (!hasNext()) {
      throw new NoSuchElementException("No more records");
    }
    if (++uncounted >= RECORDS_BETWEEN_CHECKS) {
      count();
      context.killTaskIfInterrupted();
    }
    if (fetcher.isClosed()) {
      // Threads that feed a process may outlive their task; what they would read may be gone.
      throw new IllegalStateException("The task that reads these blocks has ended");
    }
    try {
      return current.next();
    } catch (final ZerohopException e) {
      throw FailureOutcome.raise(located(e));
    }
  }

  /** Adds the owner of the block, which its codec does not know, to a failure. */
  private ZerohopException located(final ZerohopException failure) {
    if (failure instanceof DamagedBlockException) {
      final FetchedBlock damaged = fetcher.block();
      return new BlockFetchException(
          damaged.block(),
          damaged.source(),
          SparkCode.ROWS_DAMAGED.marked(failure.getMessage()),
          failure);
    }
    return failure;
  }

  /** Tells Spark of the records handed out since the last time; once more when the task ends. */
  void count() {
    metrics.incRecordsRead(uncounted);
    uncounted = 0;
  }
}
