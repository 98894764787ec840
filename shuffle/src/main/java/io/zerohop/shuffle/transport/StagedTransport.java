package io.zerohop.shuffle.transport;

import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.extent.ExtentList;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.Collection;
import java.util.List;

/**
 * Moves whole blocks to this process: through host memory or files, the path that always works, or
 * out of another node's memory.
 */
public interface StagedTransport {

  /**
   * Starts to fetch blocks of one owner and returns without waiting for them. If it throws, no
   * block of this call may be reported to the sink any more.
   *
   * @param blocks some of the source's blocks, never empty
   */
  void fetch(BlockSource source, List<Block> blocks, Sink sink);

  /**
   * Whether anybody serves an owner's blocks: false if nobody answers there although there is a
   * way, or for all of the limit. Waits no longer than that.
   */
  default boolean answers(final BlockSource source, final Duration limit) {
    return true;
  }

  /** Where blocks arrive. Thread safe; each block of a call is reported exactly once. */
  interface Sink {

    /** A block is there; the sink owns the payload from now on and releases it. */
    void arrived(Block block, StagedPayload payload);

    /**
     * A block could not be had. A {@link io.zerohop.device.ZerohopException} says what may be done:
     * (FALLBACK) it may be had another way, (RETRY) the same way later.
     */
    void failed(Block block, Throwable cause);

    /** The same for several that failed together, and are best asked for together again. */
    default void failed(final Collection<Block> blocks, final Throwable cause) {
      blocks.forEach(block -> failed(block, cause));
    }
  }

  /** The bytes of one block, landed somewhere. */
  interface StagedPayload {

    /** Bytes that were transferred. */
    long bytes();

    /** Opens the bytes; each stream has a position of its own and ends with the payload. */
    InputStream open() throws IOException;

    /**
     * Where the bytes lie, if they are in memory as their owner wrote them, each extent with its
     * checksum; null if they can only be opened.
     */
    default ExtentList extents() {
      return null;
    }

    /** Gives the memory back; called exactly once, by any thread. */
    void release();
  }
}
