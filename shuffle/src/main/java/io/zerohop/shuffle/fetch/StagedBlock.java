package io.zerohop.shuffle.fetch;

import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.Transport;
import java.io.IOException;
import java.io.InputStream;

/** A block that was transferred. */
final class StagedBlock implements FetchedBlock {
  private final BlockSource source;
  private final Block block;
  private final Transport.Payload payload;

  StagedBlock(final BlockSource source, final Block block, final Transport.Payload payload) {
    this.source = source;
    this.block = block;
    this.payload = payload;
  }

  @Override
  public Block block() {
    return block;
  }

  @Override
  public BlockSource source() {
    return source;
  }

  @Override
  public Path path() {
    return Path.STAGED;
  }

  @Override
  public long bytes() {
    return payload.bytes();
  }

  @Override
  public int extentCount() {
    return 0;
  }

  @Override
  public long extentAddress(final int index) {
    throw new IndexOutOfBoundsException("a staged block has no extents");
  }

  @Override
  public boolean extentOnDevice(final int index) {
    throw new IndexOutOfBoundsException("a staged block has no extents");
  }

  @Override
  public boolean extentReachable(final int index) {
    throw new IndexOutOfBoundsException("a staged block has no extents");
  }

  @Override
  public int extentLength(final int index) {
    throw new IndexOutOfBoundsException("a staged block has no extents");
  }

  @Override
  public InputStream stream() {
    try {
      return payload.open();
    } catch (final IOException e) {
      throw BlockFetchException.of(
          block,
          source,
          Path.STAGED,
          ShuffleCode.STAGED_NOT_OPENED.says("a staged block cannot be opened"),
          e);
    }
  }

  @Override
  public String toString() {
    return block + " (staged)";
  }
}
