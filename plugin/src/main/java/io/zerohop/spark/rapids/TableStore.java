package io.zerohop.spark.rapids;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.fetch.Fetch;
import io.zerohop.shuffle.fetch.Fetches;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.spark.outputfiles.MapOutputFiles;
import io.zerohop.spark.rapids.checksum.RowHash;
import io.zerohop.spark.rapids.read.TableGather;
import io.zerohop.spark.rapids.read.TableGather.DeviceGather;
import io.zerohop.spark.rapids.read.TableGather.HostGather;
import io.zerohop.spark.rapids.write.TableSink;
import io.zerohop.spark.rapids.write.TableSink.DeviceSink;
import io.zerohop.spark.rapids.write.TableSink.HostSink;
import java.time.Duration;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * An executor's store of RAPIDS' tables: where it keeps its own, and how it reads those of others.
 * All executors of an application store the same bytes, so each can read what any other has
 * written. Thread safe.
 */
public sealed interface TableStore {

  /**
   * Begins the output of one map task, for the caller to close.
   *
   * @param rowChecksum whether its rows are to have a checksum
   * @param attempt a number that no other attempt at this map task has
   */
  TableSink newSink(int shuffleId, long mapId, int partitions, boolean rowChecksum, long attempt);

  /**
   * Begins to fetch blocks for one reader, which closes the fetch.
   *
   * @param staged moves what cannot be read in place
   * @param cancelled asked often; true ends any wait of this fetch
   */
  Fetch fetch(
      List<BlockSource> sources,
      FallbackTransport staged,
      Fetches.Listener listener,
      BooleanSupplier cancelled);

  /** What brings the tables that one reader has fetched into memory of RAPIDS. */
  TableGather newGather();

  /**
   * Stores tables in GPU memory, where readers read them. Immutable.
   *
   * @param node which has a GPU
   * @param files take what finds no room
   * @param limit of one batch of copies
   */
  record DeviceTableStore(ShuffleNode node, MapOutputFiles files, Duration limit)
      implements TableStore {

    @Override
    public TableSink newSink(
        final int shuffleId,
        final long mapId,
        final int partitions,
        final boolean rowChecksum,
        final long attempt) {
      return new DeviceSink(
          node,
          files.newOutput(node, shuffleId, mapId, partitions, Tier.HOST),
          partitions,
          rowChecksum,
          attempt,
          limit);
    }

    @Override
    public Fetch fetch(
        final List<BlockSource> sources,
        final FallbackTransport staged,
        final Fetches.Listener listener,
        final BooleanSupplier cancelled) {
      return node.fetch(sources, staged, listener, ReadSide.DEVICE, cancelled);
    }

    @Override
    public TableGather newGather() {
      return new DeviceGather(node, limit);
    }
  }

  /**
   * Stores tables in host memory, for an executor that cannot hold blocks in GPU memory although
   * the plan requires it. They lie in shared host memory, or in files without it, and cudf copies
   * them to the GPU. Slower, and the same rows. Immutable.
   *
   * @param node without a GPU; absent if this executor has no shared memory
   * @param files take what has no room there
   * @param fetches of this executor
   */
  record HostTableStore(@Nullable ShuffleNode node, MapOutputFiles files, Fetches fetches)
      implements TableStore {

    @Override
    public TableSink newSink(
        final int shuffleId,
        final long mapId,
        final int partitions,
        final boolean rowChecksum,
        final long attempt) {
      return new HostSink(
          files.newOutput(node, shuffleId, mapId, partitions, Tier.HOST),
          rowChecksum ? RowHash.unknown(attempt) : 0);
    }

    @Override
    public Fetch fetch(
        final List<BlockSource> sources,
        final FallbackTransport staged,
        final Fetches.Listener listener,
        final BooleanSupplier cancelled) {
      return fetches.begin(sources, staged, listener, ReadSide.HOST, cancelled);
    }

    @Override
    public TableGather newGather() {
      return new HostGather();
    }
  }
}
