package io.zerohop.spark.rapids;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import ai.rapids.cudf.ColumnVector;
import ai.rapids.cudf.FakeGpu;
import ai.rapids.cudf.Table;
import com.nvidia.spark.rapids.GpuColumnVector;
import io.zerohop.shuffle.NodeStats;
import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.TestNodes;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.spark.TestNode;
import io.zerohop.spark.metrics.ReadMetrics;
import io.zerohop.spark.metrics.ReadMetrics.PathAccumulators;
import io.zerohop.spark.outputfiles.MapOutputFiles;
import io.zerohop.spark.rapids.MapInput.Batch;
import io.zerohop.spark.rapids.MapInput.Form;
import io.zerohop.spark.rapids.gpu.FakeGpuDevice;
import io.zerohop.spark.rapids.gpu.GpuTables;
import io.zerohop.spark.rapids.gpu.GpuTables.Kind;
import io.zerohop.spark.staged.BlockTransferTransport;
import io.zerohop.spark.staged.ZerohopBlockResolver;
import io.zerohop.spark.task.MapTask;
import io.zerohop.spark.task.ReduceTask;
import io.zerohop.spark.watch.ExecutorWatch;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkEnv;
import org.apache.spark.executor.TempShuffleReadMetrics;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.IndexShuffleBlockResolver;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.rapids.GpuShuffleDependency;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.storage.BlockId;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockId;
import org.apache.spark.unsafe.Platform;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;

/**
 * An exchange of RAPIDS' as an executor does its part of it: map tasks write batches, reduce tasks
 * read them, by the product's writer and reader on a node of its own and the fake GPU. {@link
 * #close} checks that nothing is left of it.
 */
final class TestExchange implements AutoCloseable {
  static final long GPU_BYTES = 256L << 20;
  private static final Duration LIMIT = Duration.ofMinutes(1);

  private final List<Kind> kinds;
  private final int partitions;
  private final Random random = new Random(7);
  private final ShuffleNode node;
  private final FakeGpuDevice gpu = new FakeGpuDevice();
  private final MapOutputFiles files;

  /** Of the executor that reads: the same, or a peer's. */
  private Fetches fetches;

  private ShuffleNode peer;
  private FallbackTransport staged;
  private final GpuShuffleDependency dependency;
  private final PathAccumulators accumulators;
  private final Map<String, SQLMetric> metrics = new HashMap<>();
  private final List<MapStatus> statuses = new ArrayList<>();
  private final List<List<String>> expected = new ArrayList<>();
  private boolean rowChecksum;
  private long packBytes = 64L << 20;
  private long batchBytes = 1L << 30;

  /** Where an executor's map outputs lie. */
  enum Store {
    /** In GPU memory. */
    DEVICE,

    /** In host memory of an executor that has no GPU of ours. */
    HOST,

    /** In files, since the executor has no memory to share. */
    FILES
  }

  TestExchange(
      final SparkContext spark,
      final Path base,
      final Store store,
      final List<Kind> kinds,
      final int partitions,
      final UnaryOperator<ShuffleNode.Setup> changes) {
    this.kinds = kinds;
    this.partitions = partitions;
    FakeGpu.begin(GPU_BYTES);
    final ShuffleNode.Setup config = changes.apply(config(base, "driver"));
    node =
        switch (store) {
          case DEVICE -> ShuffleNode.start(config, gpu);
          case HOST -> ShuffleNode.start(config);
          case FILES -> null;
        };
    final SparkEnv env = SparkEnv.get();
    final IndexShuffleBlockResolver index =
        (IndexShuffleBlockResolver) env.shuffleManager().shuffleBlockResolver();
    files = new MapOutputFiles();
    fetches = node == null ? config.stagedFetches() : node.fetches();
    staged =
        new BlockTransferTransport(
            env, new ZerohopBlockResolver(index, files, () -> node), Long.MAX_VALUE);
    for (final String name : List.of("dataSize", "dataReadSize", "rapidsShuffleReadTime")) {
      metrics.put(name, new SQLMetric("size", 0));
    }
    dependency =
        new GpuShuffleDependency(
            spark.emptyRDD(ClassTag.apply(Product2.class)),
            partitions,
            SparkTypes.of(kinds),
            scala.collection.immutable.Map.from(CollectionConverters.asScala(metrics)),
            true);
    accumulators = PathAccumulators.register(spark);
    for (int i = 0; i < partitions; i++) {
      expected.add(new ArrayList<>());
    }
  }

  private static ShuffleNode.Setup config(final Path base, final String executorId) {
    return TestNode.config(base, executorId)
        .set("pool.size", 32L << 20)
        .set("device.pool.size", 64L << 20)
        .set("segment.size", 2L << 20)
        .set("device.segment.size", 2L << 20);
  }

  TestExchange withRowChecksum() {
    rowChecksum = true;
    return this;
  }

  TestExchange packing(final long bytes) {
    packBytes = bytes;
    return this;
  }

  TestExchange readingBatchesOf(final long bytes) {
    batchBytes = bytes;
    return this;
  }

  /** Has another executor with a GPU read. */
  TestExchange readByAPeer(final Path base) {
    peer = ShuffleNode.start(config(base, "2"), new FakeGpuDevice());
    fetches = peer.fetches();
    return this;
  }

  TestExchange receivingFrom(final FallbackTransport transport) {
    staged = transport;
    return this;
  }

  /** Has no stream of the executor's GPU end any more. */
  void stick() {
    gpu.stick();
  }

  ShuffleNode peer() {
    return peer;
  }

  ShuffleNode node() {
    return node;
  }

  GpuShuffleDependency dependency() {
    return dependency;
  }

  List<MapStatus> statuses() {
    return statuses;
  }

  SQLMetric metric(final String name) {
    return metrics.get(name);
  }

  /** Random batches of so many rows each; they are expected to be read if {@code keep}. */
  MapInput input(final Form form, final double nulls, final boolean keep, final int... rows) {
    final List<Batch> batches = new ArrayList<>();
    for (final int count : rows) {
      final Table table = GpuTables.random(random, kinds, count, nulls);
      final int[] starts = random.ints(partitions, 0, count + 1).sorted().toArray();
      starts[0] = 0;
      batches.add(new Batch(table, starts));
      final List<String> texts = GpuTables.rows(table);
      for (int i = 0; keep && i < partitions; i++) {
        final int end = i + 1 == partitions ? count : starts[i + 1];
        for (final String text : texts.subList(starts[i], end)) {
          expected.get(i).add(form == Form.ROWS_ONLY ? "" : text);
        }
      }
    }
    return new MapInput(form, SparkTypes.of(kinds), batches);
  }

  /** Writes random batches by a map task. */
  MapStatus write(final Form form, final double nulls, final int... rows) {
    return write(new TestTask(), input(form, nulls, true, rows));
  }

  MapStatus write(final TestTask task, final MapInput input) {
    final BlockManagerId own = SparkEnv.get().blockManager().blockManagerId();
    final BlockManagerId location =
        node == null
            ? own
            : BlockManagerId.apply(
                own.executorId(), own.host(), own.port(), Option.apply(node.location().encode()));
    return task.run(
        () -> {
          try (input) {
            final RapidsWriter<Integer, ColumnarBatch> writer =
                new RapidsWriter<>(
                    dependency,
                    new MapTask(
                        statuses.size(),
                        task.context(),
                        task.context().taskMetrics().shuffleWriteMetrics(),
                        () -> location),
                    () ->
                        files.newOutput(
                            node, dependency.shuffleId(), statuses.size(), partitions, Tier.HOST),
                    ifGpu(node),
                    LIMIT,
                    rowChecksum,
                    packBytes);
            boolean done = false;
            try {
              writer.write(input);
              done = true;
            } catch (final IOException e) {
              throw new UncheckedIOException(e);
            } finally {
              if (!done) {
                assertThat(writer.stop(false).isEmpty()).isTrue();
              }
            }
            final MapStatus status = writer.stop(true).get();
            statuses.add(status);
            return status;
          }
        });
  }

  /** Changes a byte of what a partition has of the first map output, where it lies on the GPU. */
  void damage(final int partition, final int at) {
    final Block block = new Block(dependency.shuffleId(), statuses.get(0).mapId(), 0, partition, 1);
    final BlockSource source = new BlockSource("driver", node.location(), "driver", List.of(block));
    try (Fetch fetcher =
        node.fetches()
            .begin(
                List.of(source),
                TestNodes.noStaging(),
                TestNodes.quiet(),
                ReadSide.DEVICE,
                () -> false)) {
      assertThat(fetcher.next()).isTrue();
      // Packed tables have a header before it.
      final int extent = fetcher.block().extentCount() - 1;
      final long address = fetcher.block().extentAddress(extent) + at;
      Platform.putByte(null, address, (byte) ~Platform.getByte(null, address));
    }
  }

  /** A reader of some partitions of all map outputs so far. */
  Iterator<Product2<Integer, ColumnarBatch>> reader(
      final TestTask task, final int from, final int to) {
    final Map<BlockManagerId, List<Tuple3<BlockId, Object, Object>>> blocks = new HashMap<>();
    for (int map = 0; map < statuses.size(); map++) {
      final MapStatus status = statuses.get(map);
      for (int partition = from; partition < to; partition++) {
        if (status.getSizeForBlock(partition) > 0) {
          blocks
              .computeIfAbsent(status.location(), id -> new ArrayList<>())
              .add(
                  new Tuple3<>(
                      new ShuffleBlockId(dependency.shuffleId(), status.mapId(), partition),
                      status.getSizeForBlock(partition),
                      map));
        }
      }
    }
    final List<Tuple2<BlockManagerId, Seq<Tuple3<BlockId, Object, Object>>>> owners =
        new ArrayList<>();
    blocks.forEach(
        (id, of) -> owners.add(new Tuple2<>(id, CollectionConverters.asScala(of).toSeq())));
    final TempShuffleReadMetrics metrics =
        task.context().taskMetrics().createTempShuffleReadMetrics();
    final ReadMetrics pathMetrics =
        new ReadMetrics(task.context(), metrics, accumulators, ExecutorWatch.Reader.NONE, false);
    return new RapidsReader<Integer, ColumnarBatch>(
            dependency,
            new ReduceTask(
                CollectionConverters.asScala(owners.iterator()),
                task.context(),
                metrics,
                pathMetrics),
            fetches,
            ifGpu(peer == null ? node : peer),
            LIMIT,
            staged,
            batchBytes)
        .read();
  }

  private static ShuffleNode ifGpu(final ShuffleNode node) {
    return node != null && node.hasGpu() ? node : null;
  }

  /** The rows of a batch. */
  static List<String> rows(final ColumnarBatch batch) {
    if (batch.numCols() == 0) {
      return Collections.nCopies(batch.numRows(), "");
    }
    final ColumnVector[] columns = new ColumnVector[batch.numCols()];
    Arrays.setAll(columns, i -> ((GpuColumnVector) batch.column(i)).getBase());
    return GpuTables.rows(columns);
  }

  /** Reads some partitions by a reduce task, which looks at no batch before it has all. */
  List<String> read(final int from, final int to) {
    final TestTask task = new TestTask();
    return task.run(
        () -> {
          final List<ColumnarBatch> read = new ArrayList<>();
          try {
            final Iterator<Product2<Integer, ColumnarBatch>> batches = reader(task, from, to);
            while (batches.hasNext()) {
              read.add(batches.next()._2());
            }
            final List<String> rows = new ArrayList<>();
            read.forEach(batch -> rows.addAll(rows(batch)));
            return rows;
          } finally {
            read.forEach(ColumnarBatch::close);
          }
        });
  }

  /** Reads partitions one by one, and all of them together, and compares every row. */
  void check() {
    final List<String> all = new ArrayList<>();
    expected.forEach(all::addAll);
    checkPartitions(IntStream.range(0, partitions).toArray());
    assertThat(read(0, partitions)).containsExactlyInAnyOrderElementsOf(all);
  }

  /** Reads some partitions, each by itself, and compares every row. */
  void checkPartitions(final int... some) {
    for (final int partition : some) {
      assertThat(read(partition, partition + 1))
          .as("partition %d", partition)
          .containsExactlyInAnyOrderElementsOf(expected.get(partition));
    }
  }

  /** Nothing is written or read any more. */
  void checkIdle() {
    checkIdle(node);
    checkIdle(peer);
  }

  private static void checkIdle(final ShuffleNode idle) {
    if (idle != null) {
      final NodeStats stats = idle.stats();
      assertThat(TestNodes.writers(idle)).isZero();
      assertThat(stats.leases().open()).isZero();
      assertThat(stats.receiveBuffers().bytes()).isZero();
    }
  }

  /** Ends it after {@link #stick}, as far as that can be done: what the GPU may use is kept. */
  void abandon() {
    files.unregisterShuffle(dependency.shuffleId());
    node.unregisterShuffle(dependency.shuffleId());
    catchThrowable(node::close); // Which says what is in use yet.
    catchThrowable(FakeGpu::checkNothingIsLeft); // Which forgets it, for the tests to come.
  }

  @Override
  public void close() {
    checkIdle();
    files.unregisterShuffle(dependency.shuffleId());
    if (peer != null) {
      peer.close();
    }
    if (node != null) {
      node.unregisterShuffle(dependency.shuffleId());
      node.close();
    }
    FakeGpu.checkNothingIsLeft();
  }
}
