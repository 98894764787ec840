package io.zerohop.shuffle.catalog;

import io.zerohop.shuffle.pool.Region;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The catalog's future record of one batch: its region, and for each partition the end of its block
 * and its checksum. Filled in partition order by one thread; does not own the region.
 */
public final class BatchImage {
  private final int[] ends;
  private final boolean hasChecksums;
  private final int[] checksums;
  private int filled;
  private int end;
  private int blocks;

  /** There once the batch was packed. */
  private @Nullable Region region;

  /**
   * @param checksums whether each block comes with a checksum
   */
  public BatchImage(final int partitions, final boolean checksums) {
    this.hasChecksums = checksums;
    this.ends = new int[partitions];
    this.checksums = new int[partitions];
  }

  /** Adds the next partition's block; a length of 0 says that it is empty. */
  public void add(final int length, final int checksum) {
    end = Math.addExact(end, length);
    ends[filled] = end;
    checksums[filled] = checksum;
    filled++;
    if (length > 0) {
      blocks++;
    }
  }

  /** Sets the region into which the batch was packed. */
  public void place(final Region where) {
    region = where;
  }

  /** Returns the region into which the batch was packed. */
  public Region region() {
    return Objects.requireNonNull(region, "the batch was not packed");
  }

  /** Bytes of all blocks. */
  public int bytes() {
    return end;
  }

  /** Blocks that are not empty. */
  public int blocks() {
    return blocks;
  }

  /** Returns the begin of a block, from the batch's begin. */
  public int start(final int partition) {
    return partition == 0 ? 0 : ends[partition - 1];
  }

  /** Length of a block; 0 if it is empty. */
  public int length(final int partition) {
    return ends[partition] - start(partition);
  }

  int end(final int partition) {
    return ends[partition];
  }

  /** Returns whether each block comes with a checksum. */
  public boolean checksums() {
    return hasChecksums;
  }

  /** CRC32C of a block; meaningless without {@link #checksums}. */
  public int checksum(final int partition) {
    return checksums[partition];
  }
}
