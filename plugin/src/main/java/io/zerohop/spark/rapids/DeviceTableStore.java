package io.zerohop.spark.rapids;

import io.zerohop.shuffle.ShuffleNode;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.fetch.FetchListener;
import io.zerohop.shuffle.transport.FallbackTransport;
import io.zerohop.spark.rapids.read.DeviceGather;
import io.zerohop.spark.rapids.read.TableGather;
import io.zerohop.spark.rapids.write.DeviceSink;
import io.zerohop.spark.rapids.write.TableSink;
import io.zerohop.spark.spillfiles.MapOutputFiles;
import io.zerohop.spark.spillfiles.OverflowingOutput;
import java.time.Duration;
import java.util.List;
import java.util.function.BooleanSupplier;

/**
 * Stores tables in GPU memory, where readers read them. Immutable.
 *
 * @param node which has a GPU
 * @param files take what finds no room
 * @param limit of one batch of copies
 */
public record DeviceTableStore(ShuffleNode node, MapOutputFiles files, Duration limit)
    implements TableStore {

  @Override
  public TableSink newSink(
      final int shuffleId,
      final long mapId,
      final int partitions,
      final boolean rowChecksum,
      final long attempt) {
    final OverflowingOutput output =
        new OverflowingOutput(
            shuffleId, mapId, partitions, node.newMapOutput(shuffleId, mapId, partitions), files);
    return new DeviceSink(node, output, partitions, rowChecksum, attempt, limit);
  }

  @Override
  public BlockFetcher fetch(
      final List<BlockSource> sources,
      final FallbackTransport staged,
      final FetchListener listener,
      final BooleanSupplier cancelled) {
    return node.fetch(sources, staged, listener, ReadSide.DEVICE, cancelled);
  }

  @Override
  public TableGather newGather() {
    return new DeviceGather(node, limit);
  }
}
