package io.zerohop.shuffle.fetch;

import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.device.WaitException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.Transport;
import java.io.IOException;
import java.io.InputStream;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A block that has arrived. Its fetch owns what it lies in, and says how long it is valid (see
 * {@link Fetch}). Not thread safe.
 *
 * <p>A block in mapped memory is one or more extents, in order; together they are its bytes, and no
 * record of a fixed-frame codec straddles two. A staged block has no extents, only a stream.
 */
public final class FetchedBlock {
  /** Those of a staged block. */
  private static final ExtentList NONE = new ExtentList();

  private final Reader reader;
  private final BlockSource source;
  private final Block block;
  private final BlockPath path;

  /** The extents of the block are those between the two indexes. */
  private final ExtentList extents;

  private final int from;
  private final int end;

  /** Where it is read in place; absent if it was transferred. */
  private final @Nullable Window window;

  /** What was transferred; absent if it is read in place. */
  private final Transport.@Nullable Payload payload;

  /** A block that is read where it lies. */
  FetchedBlock(
      final Reader reader, final Window window, final Block block, final int from, final int end) {
    this.reader = reader;
    this.source = window.source();
    this.block = block;
    this.path = window.path();
    this.extents = window.extents();
    this.from = from;
    this.end = end;
    this.window = window;
    this.payload = null;
  }

  /**
   * A block that was transferred, into memory of this node if the payload has extents.
   *
   * @param asked the path that it was asked for by
   */
  FetchedBlock(
      final Reader reader,
      final BlockSource source,
      final Block block,
      final BlockPath asked,
      final Transport.Payload payload) {
    this.reader = reader;
    this.source = source;
    this.block = block;
    this.path = payload.extents() == null ? BlockPath.STAGED : payload.path(asked);
    this.extents = Objects.requireNonNullElse(payload.extents(), NONE);
    this.from = 0;
    this.end = extents.size();
    this.window = null;
    this.payload = payload;
  }

  public Block block() {
    return block;
  }

  /** The owner that it came from, with all blocks of that owner that were asked for. */
  public BlockSource source() {
    return source;
  }

  public BlockPath path() {
    return path;
  }

  /** Returns whether it was transferred into memory of this node, with its extents there. */
  boolean isReceived() {
    return payload != null && extents != NONE;
  }

  /** Bytes that moved: the sum of the extents, or the bytes that were transferred. */
  public long bytes() {
    if (payload != null) {
      return payload.bytes();
    }
    long bytes = 0;
    for (int i = from; i < end; i++) {
      bytes += extents.length(i);
    }
    return bytes;
  }

  /** Ranges of mapped memory; 0 for a staged block. */
  public int extentCount() {
    return end - from;
  }

  /** Address of an extent in this process. */
  public long extentAddress(final int index) {
    return extents.address(place(index));
  }

  /** Length of an extent in bytes, positive. */
  public int extentLength(final int index) {
    return extents.length(place(index));
  }

  /** Returns whether an extent lies in GPU memory; only if the blocks are read there. */
  public boolean extentOnDevice(final int index) {
    return extents.isDeviceOnly(place(index));
  }

  /**
   * Returns whether the GPU may read an extent where it lies: in GPU memory, or in host memory,
   * which this brings within its reach if that was not done before. Only if the blocks are read on
   * the GPU.
   */
  public boolean extentReachable(final int index) {
    final int place = place(index);
    return window == null ? reader.all().devices().hasGpu() : window.reachable(place);
  }

  private int place(final int index) {
    return from + Objects.checkIndex(index, end - from);
  }

  /**
   * Returns the signal that a GPU's stream waits for before it reads the block, or one that is
   * handed out behind it; absent if that is raised, as it nearly always is. Only if the blocks are
   * read on the GPU.
   */
  public @Nullable SignalEpoch ready() {
    return window == null ? null : window.ready(block);
  }

  /**
   * Waits on the host for the same, so that a stream's wait ends soon, or never will.
   *
   * @throws BlockFetchException if it does not come, or its owner is lost
   * @throws WaitException (RETRY) if cancelled
   */
  public void awaitReady() {
    if (window != null) {
      window.awaitReady(block);
    }
  }

  /**
   * The block's bytes as a stream that reads straight from the mapping (or from what was
   * transferred, unwrapped). The caller closes it.
   */
  public InputStream stream() {
    if (window != null) {
      return extents.stream(from, end, window::held);
    }
    try {
      return Objects.requireNonNull(payload, "neither in place nor transferred")
          .open(reader.ended());
    } catch (final IOException e) {
      throw BlockFetchException.of(
          block,
          source,
          path,
          path == BlockPath.STAGED
              ? ShuffleCode.STAGED_NOT_OPENED.says("a staged block cannot be opened")
              : ShuffleCode.RECEIVED_NOT_OPENED.says("a block cannot be opened"),
          e);
    }
  }

  /**
   * Returns whether an extent carries a checksum that its reader has to compare, by {@link
   * #verify(int, int)}: one on a GPU. For readers on the host it was compared before.
   */
  public boolean extentChecked(final int index) {
    return reader.verifies() && extents.isChecked(place(index));
  }

  /**
   * Compares an extent that the host can read with its checksum, if its reader has to.
   *
   * @throws BlockFetchException if it is not what was written
   */
  public void verify(final int index) {
    if (reader.verifies()) {
      refuse(index, extents.damage(place(index)));
    }
  }

  /**
   * Compares the CRC32C of an extent's bytes, as they arrived at their reader, with the checksum
   * that it carries.
   *
   * @throws BlockFetchException if it is not what was written
   */
  public void verify(final int index, final int crc32c) {
    refuse(index, extents.damage(place(index), crc32c));
  }

  private void refuse(final int index, final @Nullable String damage) {
    if (damage == null) {
      return;
    }
    if (window != null) {
      throw window.damaged(block, place(index), damage);
    }
    throw BlockFetchException.of(
        block,
        source,
        path,
        ShuffleCode.BLOCK_DAMAGED_ON_ARRIVAL.says(
            "a block is damaged: in extent " + index + ", " + damage),
        null);
  }

  /** Compares all its extents for a reader on the host. */
  FetchedBlock verified() {
    for (int i = 0; reader.expectsVerified() && i < extentCount(); i++) {
      refuse(i, extents.damage(place(i)));
    }
    return this;
  }

  /** Releases the memory that it was transferred into, if it was; called once. */
  void releaseMoved() {
    if (payload != null) {
      payload.release();
    }
  }

  /** Returns the window whose last block this is; absent of any other block. */
  @Nullable Window lastOf() {
    return window != null && end == extents.size() ? window : null;
  }

  @Override
  public String toString() {
    return block + " (" + path.label() + ")";
  }
}
