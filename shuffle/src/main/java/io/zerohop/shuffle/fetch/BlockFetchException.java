package io.zerohop.shuffle.fetch;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import org.jspecify.annotations.Nullable;

/**
 * Thrown if a block could not be read from its owner; carries what Spark needs to run its map task
 * again.
 */
public final class BlockFetchException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  private final transient Block block;
  private final transient BlockSource source;

  public BlockFetchException(
      final Block block,
      final BlockSource source,
      final Message message,
      final @Nullable Throwable cause) {
    super(Category.FETCH_FAILED, message, cause);
    this.block = block;
    this.source = source;
  }

  /**
   * One whose message names the block, its owner and the path.
   *
   * @param message what went wrong, with a code; its reason is the cause
   */
  static BlockFetchException of(
      final Block block,
      final BlockSource source,
      final BlockPath path,
      final Message message,
      final @Nullable Throwable cause) {
    return new BlockFetchException(
        block,
        source,
        (cause == null ? message : message.because(cause))
            .at(block + " of executor " + source.executorId() + ", path " + path.label()),
        cause);
  }

  public Block block() {
    return block;
  }

  /**
   * The owner as the reader knew it; {@link BlockSource#address()} goes into the report as it is.
   */
  public BlockSource source() {
    return source;
  }
}
