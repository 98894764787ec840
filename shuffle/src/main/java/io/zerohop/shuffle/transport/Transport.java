package io.zerohop.shuffle.transport;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.extent.ExtentList;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Moves blocks to this process for one kind of reader: out of another node's memory, or by Spark's
 * block transfer. Thread safe. What reads blocks where they lie is a {@link BlockMemory} instead.
 */
@FunctionalInterface
public interface Transport {

  /**
   * Starts to fetch blocks of one owner and returns without waiting for them. Each of them is
   * reported to the sink exactly once, by any thread, this one included. If the call throws, no
   * block of it is reported.
   *
   * @param blocks some of the source's blocks, never empty
   */
  void fetch(BlockSource source, List<Block> blocks, Sink sink);

  /** Receives blocks. Thread safe; each block of a call is reported exactly once. */
  interface Sink {

    /** A block is there; the sink owns the payload from now on and releases it. */
    void arrived(Block block, Payload payload);

    /**
     * A block could not be had. A {@link io.zerohop.device.ZerohopException} says what may be done:
     * (FALLBACK) it may be had another way, (RETRY) the same way later.
     */
    void failed(Block block, Throwable cause);

    /** Reports several blocks that failed together, and should be requested together again. */
    default void failed(final Collection<Block> blocks, final Throwable cause) {
      blocks.forEach(block -> failed(block, cause));
    }
  }

  /** The bytes of one block, received somewhere. */
  interface Payload {

    /** Bytes that were transferred. */
    long bytes();

    /**
     * Opens the bytes; each stream has a position of its own and ends with the payload.
     *
     * @param ended asked often while a stream waits for bytes; true ends the wait by a {@link
     *     io.zerohop.device.WaitException}
     */
    InputStream open(BooleanSupplier ended) throws IOException;

    /**
     * Returns the places of the bytes if they are in memory as their owner wrote them, each extent
     * with its checksum; absent if they can only be opened.
     */
    default @Nullable ExtentList extents() {
      return null;
    }

    /**
     * The path that it is to be counted as.
     *
     * @param asked the one that it was asked for by
     */
    default BlockPath path(final BlockPath asked) {
      return asked;
    }

    /** Gives the memory back; called exactly once, by any thread. */
    void release();
  }

  /**
   * The transport for blocks that no other one can read. It does not depend on the others, and also
   * reads blocks that an owner has in files. Thread safe.
   *
   * <p>Blocks of a source with a location come from that life of its owner, or of somebody to whom
   * it has left them, and fail where neither answers. That somebody answers at the owner's address
   * proves nothing: an executor of another application may have it by now, with blocks of the same
   * numbers.
   */
  @FunctionalInterface
  interface FallbackTransport extends Transport {

    /**
     * Returns whether anybody serves an owner's blocks: false if nobody answers there although
     * there is a way, or for all of the limit. Waits no longer than that.
     */
    default boolean answers(final BlockSource source, final Duration limit) {
      return true;
    }

    /**
     * Says that an owner has ended, for certain, so that it need not be asked any more where
     * somebody else has its blocks. Does not wait.
     */
    default void ended(final BlockSource source) {}
  }

  /** Thrown if blocks cannot be read from their owner's memory, but only sent by it. */
  final class NotGettableException extends ZerohopException {
    private static final long serialVersionUID = 1L;

    /**
     * @param why they cannot be, as a part of a sentence
     */
    public NotGettableException(final String why) {
      super(Category.FALLBACK, Message.of("the blocks cannot be read directly").because(why));
    }
  }

  /** Thrown if the owner of blocks is dead, and the blocks in its memory are lost. */
  public static final class OwnerGoneException extends ZerohopException {
    private static final long serialVersionUID = 1L;

    public OwnerGoneException(final Message message, final @Nullable Throwable cause) {
      super(Category.FETCH_FAILED, message, cause);
    }
  }
}
