package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.conf.Config;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Limits the heap that the lists of leased blocks take at their owner, of one lease and of all
 * together. Without {@code spark.authenticate} anybody who reaches the block port can ask for
 * leases. Readers ask for windows of some MiB, and stay far below. Thread safe.
 */
final class LeaseRoom {
  private static final long MIN_BYTES = 64L << 20;
  private static final int PART_OF_HEAP = 8;

  /** A lease's part of all. */
  private static final int PART_OF_ONE = 4;

  /** With which the answer about a lease is as long as a carrier brings. */
  private static final long MAX_LEASE_BYTES = 192L << 20;

  /** Windows of one-extent blocks for which there is room, whatever their size is set to. */
  private static final int WINDOWS = 8;

  /** Blocks that a request may always have. */
  private static final int MIN_BLOCKS = 4096;

  /** Approximate sizes in the heap. */
  private static final int LEASE_BYTES = 1 << 10;

  private static final int BLOCK_BYTES = 64;
  private static final int EXTENT_BYTES = 96;

  private final long maxBytes;
  private final long maxLeaseBytes;
  private final int maxBlocks;
  private final AtomicLong taken = new AtomicLong();

  /**
   * @param maxBytes of all leases
   * @param maxLeaseBytes of one
   * @param maxBlocks of one
   */
  LeaseRoom(final long maxBytes, final long maxLeaseBytes, final int maxBlocks) {
    this.maxBytes = maxBytes;
    this.maxLeaseBytes = maxLeaseBytes;
    this.maxBlocks = maxBlocks;
  }

  /**
   * The room of an executor.
   *
   * @param conf has the size of readers' windows
   * @param heap maximum bytes of the process's heap
   */
  static LeaseRoom of(final Config conf, final long heap) {
    final int blocks = Math.max(MIN_BLOCKS, conf.fetch().windowBlocks());
    final long windows = WINDOWS * (long) blocks * (BLOCK_BYTES + EXTENT_BYTES);
    final long maxBytes = Math.max(MIN_BYTES, Math.max(heap / PART_OF_HEAP, windows));
    return new LeaseRoom(maxBytes, Math.min(maxBytes / PART_OF_ONE, MAX_LEASE_BYTES), blocks);
  }

  /** Bytes of all leases. */
  long taken() {
    return taken.get();
  }

  /** Returns the room of a new lease, which has none yet. */
  Share share() {
    return new Share();
  }

  /** One lease's room. For one thread, which hands it on safely. */
  final class Share {
    /** How many extents there is room for from one to the next time that more is taken. */
    private static final int STEP = 16;

    private long bytes;
    private int extents;

    /**
     * Takes room for a lease and its blocks, before there is any of them.
     *
     * @throws ZerohopException (RETRY) if there is not so much
     */
    void takeBlocks(final int blocks) {
      if (blocks > maxBlocks) {
        throw refused("a request has too many blocks: " + blocks);
      }
      take(LEASE_BYTES + (long) BLOCK_BYTES * blocks);
    }

    /**
     * Takes room for one extent more.
     *
     * @param present extents that there are
     * @throws ZerohopException (RETRY) if there is none
     */
    void takeExtent(final int present) {
      if (present == extents) {
        take((long) EXTENT_BYTES * STEP);
        extents += STEP;
      }
    }

    private void take(final long more) {
      if (bytes + more > maxLeaseBytes) {
        throw refused("a request has blocks of too many pieces");
      }
      if (taken.addAndGet(more) > maxBytes) {
        taken.addAndGet(-more);
        throw refused(
            "readers hold leases on too many blocks of their owner: "
                + taken()
                + " of "
                + maxBytes
                + " bytes of heap");
      }
      bytes += more;
    }

    private ZerohopException refused(final String why) {
      return new ZerohopException(ZerohopException.Category.RETRY, why);
    }

    /** Gives all of it back. Called once, when nothing more is taken. */
    void release() {
      taken.addAndGet(-bytes);
    }
  }
}
