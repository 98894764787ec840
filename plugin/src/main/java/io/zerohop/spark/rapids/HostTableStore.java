package io.zerohop.spark.rapids;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.StagedReads;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.fetch.FetchListener;
import io.zerohop.shuffle.transport.FallbackTransport;
import io.zerohop.shuffle.write.MapOutputWriter;
import io.zerohop.spark.rapids.checksum.RowHash;
import io.zerohop.spark.rapids.read.HostGather;
import io.zerohop.spark.rapids.read.TableGather;
import io.zerohop.spark.rapids.write.HostSink;
import io.zerohop.spark.rapids.write.TableSink;
import io.zerohop.spark.spillfiles.MapOutputFiles;
import io.zerohop.spark.spillfiles.OverflowingOutput;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Stores tables in host memory, for an executor that cannot hold blocks in GPU memory although the
 * plan requires it. They lie in shared host memory, or in files without it, and cudf copies them to
 * the GPU. Slower, and the same rows. Immutable.
 *
 * @param node without a GPU; absent if this executor has no shared memory
 * @param files take what has no room there
 * @param staged how blocks come without shared memory
 */
public record HostTableStore(@Nullable ShuffleNode node, MapOutputFiles files, StagedReads staged)
    implements TableStore {

  @Override
  public TableSink newSink(
      final int shuffleId,
      final long mapId,
      final int partitions,
      final boolean rowChecksum,
      final long attempt) {
    final MapOutputWriter memory =
        node == null ? null : node.newMapOutput(shuffleId, mapId, partitions);
    return new HostSink(
        new OverflowingOutput(shuffleId, mapId, partitions, memory, files),
        rowChecksum ? RowHash.unknown(attempt) : 0);
  }

  @Override
  public BlockFetcher fetch(
      final List<BlockSource> sources,
      final FallbackTransport transport,
      final FetchListener listener,
      final BooleanSupplier cancelled) {
    return node == null
        ? staged.fetch(sources, transport, listener, cancelled)
        : node.fetch(sources, transport, listener, cancelled);
  }

  @Override
  public TableGather newGather() {
    return new HostGather();
  }
}
