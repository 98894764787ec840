package io.zerohop.shuffle.fetch;

import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.device.WaitException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Path;
import java.io.InputStream;

/**
 * A block that has arrived. It is valid until its fetcher moves past the block's window (see {@link
 * BlockFetcher}). Not thread safe.
 *
 * <p>A block in mapped memory is one or more extents, in order; together they are its bytes, and no
 * record of a fixed-frame codec straddles two. A staged block has no extents, only a stream.
 */
public interface FetchedBlock {

  Block block();

  /** The owner that it came from, with all blocks of that owner that were asked for. */
  BlockSource source();

  Path path();

  /** Bytes that moved: the sum of the extents, or the bytes that were transferred. */
  long bytes();

  /** Ranges of mapped memory; 0 for a staged block. */
  int extentCount();

  /** Address of an extent in this process. */
  long extentAddress(int index);

  /** Returns whether an extent lies in GPU memory; only if the blocks are read there. */
  boolean extentOnDevice(int index);

  /**
   * Returns whether the GPU may read an extent where it lies: in GPU memory, or in host memory,
   * which this brings within its reach if that was not done before. Only if the blocks are read on
   * the GPU.
   */
  boolean extentReachable(int index);

  /**
   * Returns the signal that a GPU's stream waits for before it reads the block, or one that is
   * handed out behind it; null if that is raised, as it nearly always is. Only if the blocks are
   * read on the GPU.
   */
  default SignalEpoch ready() {
    return null;
  }

  /**
   * Waits on the host for the same, so that a stream's wait ends soon, or never will.
   *
   * @throws BlockFetchException if it does not come, or its owner is lost
   * @throws WaitException (RETRY) if cancelled
   */
  default void awaitReady() {}

  /** Length of an extent in bytes, positive. */
  int extentLength(int index);

  /**
   * The block's bytes as a stream that reads straight from the mapping (or from what was
   * transferred, unwrapped). The caller closes it.
   */
  InputStream stream();
}
