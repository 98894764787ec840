package io.zerohop.shuffle.fetch;

import io.zerohop.shuffle.Path;

/** Hears what a fetcher moves and how long its reader waits; called on the reader's thread. */
public interface FetchListener {

  /**
   * Blocks are ready to be read.
   *
   * @param path the way they took
   * @param blocks how many
   * @param bytes their bytes together
   */
  void fetched(Path path, long blocks, long bytes);

  /** The reader stood still for this many nanoseconds. */
  void waited(long nanos);
}
