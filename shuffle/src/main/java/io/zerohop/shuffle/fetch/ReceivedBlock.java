package io.zerohop.shuffle.fetch;

import io.zerohop.device.LogCode;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.Transport.Payload;
import java.io.IOException;
import java.io.InputStream;
import java.util.Objects;

/** A block of another node, received into memory of this one, with its extents there. */
final class ReceivedBlock implements FetchedBlock {
  private final BlockSource source;
  private final Block block;
  private final Path path;
  private final Payload payload;
  private final ExtentList extents;
  private final boolean withinGpuReach;

  /**
   * @param withinGpuReach whether what was received is within the reach of the reader's GPU
   */
  ReceivedBlock(
      final BlockSource source,
      final Block block,
      final Path path,
      final Payload payload,
      final boolean withinGpuReach) {
    this.source = source;
    this.block = block;
    this.path = path;
    this.payload = payload;
    this.extents = payload.extents();
    this.withinGpuReach = withinGpuReach;
  }

  /**
   * Compares each extent with its checksum, as far as it has one.
   *
   * @throws BlockFetchException if it is not what was written
   */
  ReceivedBlock verified() {
    for (int i = 0; i < extents.size(); i++) {
      final String damage = extents.damage(i);
      if (damage != null) {
        throw failed(
            ShuffleCode.BLOCK_DAMAGED_ON_ARRIVAL,
            "a block is damaged: in extent " + i + ", " + damage,
            null);
      }
    }
    return this;
  }

  private BlockFetchException failed(final LogCode code, final String what, final Exception cause) {
    return BlockFetchException.of(block, source, path, code.says(what), cause);
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
    return path;
  }

  @Override
  public long bytes() {
    return payload.bytes();
  }

  @Override
  public int extentCount() {
    return extents.size();
  }

  @Override
  public long extentAddress(final int index) {
    return extents.address(checked(index));
  }

  @Override
  public boolean extentOnDevice(final int index) {
    return extents.isDeviceOnly(checked(index));
  }

  @Override
  public boolean extentReachable(final int index) {
    checked(index);
    return withinGpuReach;
  }

  @Override
  public int extentLength(final int index) {
    return extents.length(checked(index));
  }

  private int checked(final int index) {
    return Objects.checkIndex(index, extents.size());
  }

  @Override
  public InputStream stream() {
    try {
      return payload.open();
    } catch (final IOException e) {
      throw failed(ShuffleCode.RECEIVED_NOT_OPENED, "a block cannot be opened", e);
    }
  }

  @Override
  public String toString() {
    return block + " (" + path.label() + ")";
  }
}
