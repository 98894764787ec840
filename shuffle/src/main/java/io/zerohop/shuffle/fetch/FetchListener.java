package io.zerohop.shuffle.fetch;

import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.Path;
import java.util.List;

/** Hears what a fetcher moves and how long its reader waits; called on the reader's thread. */
public interface FetchListener {

  /**
   * Blocks are ready to be read.
   *
   * @param path the way they took
   * @param blocks which; valid during the call only
   * @param bytes their bytes together
   */
  void fetched(Path path, List<Block> blocks, long bytes);

  /** The reader stood still for this many nanoseconds. */
  void waited(long nanos);
}
