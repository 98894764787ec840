package io.zerohop.spark.rapids;

import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetcher;
import io.zerohop.shuffle.fetch.FetchListener;
import io.zerohop.shuffle.transport.FallbackTransport;
import io.zerohop.spark.rapids.read.TableGather;
import io.zerohop.spark.rapids.write.TableSink;
import java.util.List;
import java.util.function.BooleanSupplier;

/**
 * An executor's store of RAPIDS' tables: where it keeps its own, and how it reads those of others.
 * All executors of an application store the same bytes, so each can read what any other has
 * written. Thread safe.
 */
public sealed interface TableStore permits DeviceTableStore, HostTableStore {

  /**
   * Begins the output of one map task, for the caller to close.
   *
   * @param rowChecksum whether its rows are to have a checksum
   * @param attempt a number that no other attempt at this map task has
   */
  TableSink newSink(int shuffleId, long mapId, int partitions, boolean rowChecksum, long attempt);

  /**
   * Begins to fetch blocks for one reader, which closes the fetcher.
   *
   * @param staged moves what cannot be read in place
   * @param cancelled asked often; true ends any wait of this fetcher
   */
  BlockFetcher fetch(
      List<BlockSource> sources,
      FallbackTransport staged,
      FetchListener listener,
      BooleanSupplier cancelled);

  /** What brings the tables that one reader has fetched into memory of RAPIDS. */
  TableGather newGather();
}
