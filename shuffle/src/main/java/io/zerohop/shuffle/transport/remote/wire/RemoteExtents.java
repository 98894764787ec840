package io.zerohop.shuffle.transport.remote.wire;

import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.Tier;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * The places of one request's blocks at their owner: a run of extents for each block, none if the
 * owner does not hold it. Grows while it is made, does not change afterwards.
 *
 * <p>As bytes, big-endian: number of blocks, then for each the index behind its last extent, then
 * the number of extents and for each
 *
 * <pre>
 *  0                8          12         16      17          21
 *  | segment id     | offset   | length   | flags | CRC32C    |
 * </pre>
 */
public final class RemoteExtents {
  private static final int EXTENT_BYTES = 21;
  private static final byte CHECKED = 1;

  private int[] ends = new int[16];
  private int blocks;
  private long[] segments = new long[16];
  private int[] offsets = new int[16];
  private int[] lengths = new int[16];
  private boolean[] checked = new boolean[16];
  private int[] checksums = new int[16];
  private int size;

  /** Adds an extent of the block that is not ended yet. */
  public void add(
      final long segment,
      final long offset,
      final int length,
      final boolean isChecked,
      final int checksum) {
    if (size == segments.length) {
      segments = Arrays.copyOf(segments, 2 * size);
      offsets = Arrays.copyOf(offsets, 2 * size);
      lengths = Arrays.copyOf(lengths, 2 * size);
      checked = Arrays.copyOf(checked, 2 * size);
      checksums = Arrays.copyOf(checksums, 2 * size);
    }
    segments[size] = segment;
    offsets[size] = Math.toIntExact(offset);
    lengths[size] = length;
    checked[size] = isChecked;
    checksums[size] = checksum;
    size++;
  }

  /** The extents added since the last call, if any, are one block. */
  public void endBlock() {
    if (blocks == ends.length) {
      ends = Arrays.copyOf(ends, 2 * blocks);
    }
    ends[blocks++] = size;
  }

  public int blocks() {
    return blocks;
  }

  /** Index of a block's first extent. */
  public int begin(final int block) {
    return block == 0 ? 0 : ends[block - 1];
  }

  /** Index behind a block's last extent; that of its first if the owner does not hold it. */
  public int end(final int block) {
    return ends[block];
  }

  /** Extents of all blocks. */
  public int size() {
    return size;
  }

  public long segment(final int extent) {
    return segments[extent];
  }

  /** Returns whether an extent lies in the owner's GPU memory. */
  public boolean isOnGpu(final int extent) {
    return SegmentIds.tier(segments[extent]) == Tier.DEVICE;
  }

  public int offset(final int extent) {
    return offsets[extent];
  }

  public int length(final int extent) {
    return lengths[extent];
  }

  public boolean isChecked(final int extent) {
    return checked[extent];
  }

  public int checksum(final int extent) {
    return checksums[extent];
  }

  /** Bytes of {@link #write}. */
  public int encodedBytes() {
    return 8 + 4 * blocks + EXTENT_BYTES * size;
  }

  public void write(final ByteBuffer to) {
    to.putInt(blocks);
    for (int i = 0; i < blocks; i++) {
      to.putInt(ends[i]);
    }
    to.putInt(size);
    for (int i = 0; i < size; i++) {
      to.putLong(segments[i]).putInt(offsets[i]).putInt(lengths[i]);
      to.put(checked[i] ? CHECKED : 0).putInt(checksums[i]);
    }
  }

  /**
   * Reads what {@link #write} wrote.
   *
   * @throws java.nio.BufferUnderflowException if it is cut off
   * @throws IllegalArgumentException if it makes no sense
   */
  public static RemoteExtents read(final ByteBuffer from) {
    final RemoteExtents extents = new RemoteExtents();
    extents.blocks = count(from, 4);
    extents.ends = new int[extents.blocks];
    for (int i = 0; i < extents.blocks; i++) {
      extents.ends[i] = from.getInt();
      check(extents.ends[i] >= extents.begin(i), "blocks are out of order");
    }
    final int extentsThere = count(from, EXTENT_BYTES);
    for (int i = 0; i < extentsThere; i++) {
      final long segment = from.getLong();
      final int offset = from.getInt();
      final int length = from.getInt();
      final boolean isChecked = from.get() == CHECKED;
      check(offset >= 0 && length > 0, "an extent is not within a segment");
      extents.add(segment, offset, length, isChecked, from.getInt());
    }
    check(
        extents.size == (extents.blocks == 0 ? 0 : extents.ends[extents.blocks - 1]),
        "extents are missing");
    return extents;
  }

  private static int count(final ByteBuffer from, final int bytesEach) {
    final int count = from.getInt();
    check(count >= 0 && (long) count * bytesEach <= from.remaining(), "it is truncated");
    return count;
  }

  private static void check(final boolean right, final String otherwise) {
    if (!right) {
      throw new IllegalArgumentException("a response about blocks is invalid: " + otherwise);
    }
  }
}
