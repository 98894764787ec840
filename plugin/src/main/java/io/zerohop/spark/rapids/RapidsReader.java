package io.zerohop.spark.rapids;

import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.spark.rapids.api.ExchangeMetrics;
import io.zerohop.spark.rapids.api.RapidsClasses;
import io.zerohop.spark.rapids.format.TableHeader;
import io.zerohop.spark.rapids.read.BatchIterator;
import io.zerohop.spark.rapids.read.TableLoader;
import io.zerohop.spark.task.ReduceTask;
import io.zerohop.spark.task.ReduceTask.ReadEnd;
import io.zerohop.spark.task.TrackedBlocks;
import java.util.List;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.sql.types.DataType;
import scala.Product2;
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
  private final TableStore tables;
  private final FallbackTransport staged;
  private final long batchBytes;

  /**
   * A reader.
   *
   * @param tables how to get at them
   * @param batchBytes how large the batches that are handed out should be
   */
  public RapidsReader(
      final ShuffleDependency<K, ?, C> dependency,
      final ReduceTask task,
      final TableStore tables,
      final FallbackTransport staged,
      final long batchBytes) {
    this.dependency = dependency;
    this.task = task;
    this.tables = tables;
    this.staged = staged;
    this.batchBytes = batchBytes;
  }

  @Override
  @SuppressWarnings("unchecked")
  public Iterator<Product2<K, C>> read() {
    final RapidsClasses rapids = RapidsClasses.get();
    final ExchangeMetrics exchange = ExchangeMetrics.of(dependency);
    final DataType[] types = rapids.sparkTypes(dependency);
    final List<BlockSource> sources =
        TrackedBlocks.sources(
            task.blocks(), task.context().taskAttemptId(), TableHeader.typicalBytes(types.length));
    final BlockFetcher fetcher =
        tables.fetch(
            sources,
            staged,
            task.pathMetrics().listener(task.metrics()),
            () -> task.context().isInterrupted() || task.context().isCompleted());
    final ReadEnd end = new ReadEnd();
    final BatchIterator batches =
        new BatchIterator(
            rapids,
            fetcher,
            new TableLoader(rapids, tables.newGather(), types, fetcher::checkIntact, exchange),
            types,
            batchBytes,
            task,
            exchange,
            end);
    end.register(task.context(), batches::close);
    return (Iterator<Product2<K, C>>) (Iterator<?>) batches;
  }
}
