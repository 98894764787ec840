package io.zerohop.shuffle.transport;

import io.zerohop.shuffle.Block;
import io.zerohop.shuffle.fetch.BlockSource;
import java.io.IOException;
import java.io.InputStream;
import java.util.List;

/** Moves whole blocks through host memory or files: the path that always works. */
public interface StagedTransport {

  /**
   * Starts to fetch blocks of one owner and returns without waiting for them. If it throws, no
   * block of this call may be reported to the sink any more.
   *
   * @param blocks some of the source's blocks, never empty
   */
  void fetch(BlockSource source, List<Block> blocks, Sink sink);

  /** Where blocks arrive. Thread safe; each block of a call is reported exactly once. */
  interface Sink {

    /** A block is there; the sink owns the payload from now on and releases it. */
    void arrived(Block block, StagedPayload payload);

    /** A block could not be had. */
    void failed(Block block, Throwable cause);
  }

  /** The bytes of one block, landed somewhere. */
  interface StagedPayload {

    /** Bytes that were transferred. */
    long bytes();

    /** Opens the bytes; each stream has a position of its own and ends with the payload. */
    InputStream open() throws IOException;

    /** Gives the memory back; called exactly once, by any thread. */
    void release();
  }
}
