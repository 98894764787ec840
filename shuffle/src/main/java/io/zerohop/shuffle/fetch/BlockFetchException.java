package io.zerohop.shuffle.fetch;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;

/** A block could not be read from its owner; carries what Spark needs to run its map task again. */
public final class BlockFetchException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  private final transient Block block;
  private final transient BlockSource source;

  public BlockFetchException(
      final Block block, final BlockSource source, final String message, final Throwable cause) {
    super(Category.FETCH_FAILED, message, cause);
    this.block = block;
    this.source = source;
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
