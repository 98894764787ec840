package io.zerohop.shuffle;

import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.fetch.BlockSource;
import io.zerohop.shuffle.fetch.FetchListener;
import io.zerohop.shuffle.transport.StagedTransport;
import java.util.List;
import java.util.function.BooleanSupplier;

/** One executor's part of the shuffle. */
public abstract class ShuffleNode implements AutoCloseable {
  ShuffleNode() {}

  public static ShuffleNode start(final NodeConfig config) {
    throw new UnsupportedOperationException("not in this slice: " + config.executorId());
  }

  public abstract Location location();

  public abstract MapOutputWriter newMapOutput(int shuffleId, long mapId, int partitions);

  public abstract boolean holds(int shuffleId, long mapId);

  public abstract MapOutputLease lease(int shuffleId, long mapId);

  public abstract boolean remove(int shuffleId, long mapId);

  public abstract List<StoredOutput> stored();

  public abstract void unregisterShuffle(int shuffleId);

  public abstract BlockFetcher fetch(
      List<BlockSource> sources,
      StagedTransport staged,
      FetchListener listener,
      BooleanSupplier cancelled);

  public abstract NodeStats stats();

  @Override
  public abstract void close();
}
