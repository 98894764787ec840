package io.zerohop.spark.blocktransfer;

import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.fetch.BlockFetchException;
import io.zerohop.spark.log.SparkCode;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;

/**
 * A staged block's stream that reports damage as a fetch failure. Bytes that cannot be decompressed
 * or end too early must make Spark run the map task again, and not just this task. Not thread safe.
 */
final class CheckedBlockStream extends FilterInputStream {
  private final Block block;
  private final BlockSource source;

  CheckedBlockStream(final InputStream in, final Block block, final BlockSource source) {
    super(in);
    this.block = block;
    this.source = source;
  }

  @Override
  public int read() {
    try {
      return in.read();
    } catch (final IOException e) {
      throw damaged(e);
    }
  }

  @Override
  public int read(final byte[] bytes, final int offset, final int length) {
    try {
      return in.read(bytes, offset, length);
    } catch (final IOException e) {
      throw damaged(e);
    }
  }

  @Override
  public long skip(final long count) {
    try {
      return in.skip(count);
    } catch (final IOException e) {
      throw damaged(e);
    }
  }

  private BlockFetchException damaged(final IOException cause) {
    return new BlockFetchException(
        block,
        source,
        SparkCode.STAGED_DAMAGED
            .says("a staged block is damaged")
            .at(block + " of executor " + source.executorId())
            .because(cause),
        cause);
  }
}
