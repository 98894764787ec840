package io.zerohop.shuffle.fetch;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import java.util.List;

/**
 * Receives the counts of a fetcher and its reader's waiting time; called on the reader's thread.
 */
public interface FetchListener {

  /**
   * Blocks are ready to be read.
   *
   * @param source their owner
   * @param link the way they took
   * @param blocks which; valid during the call only
   * @param bytes their bytes together
   */
  void fetched(BlockSource source, Link link, List<Block> blocks, long bytes);

  /**
   * Blocks have to be staged, because no better path is available. They are told of again when they
   * are ready to be read.
   *
   * @param source their owner
   * @param blocks which; not empty, valid during the call only
   * @param reason why, in words
   */
  default void fellBack(final BlockSource source, final List<Block> blocks, final Message reason) {}

  /** The reader waited for this many nanoseconds. */
  void waited(long nanos);
}
