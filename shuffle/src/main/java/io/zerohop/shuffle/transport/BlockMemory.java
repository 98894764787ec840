package io.zerohop.shuffle.transport;

import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.catalog.CatalogView;
import io.zerohop.shuffle.catalog.LaneTable.LanePool;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import org.jspecify.annotations.Nullable;

/** One owner's memory as this process reads it: its own or a peer's. Thread safe. */
public interface BlockMemory {

  /** {@link BlockPath#LOCAL} or {@link BlockPath#PEER}. */
  BlockPath path();

  /** Returns what bytes of a tier pass to this process. */
  Link link(Tier tier);

  /** Leases are taken here, before anything is looked up. */
  LanePool lanes();

  /** Returns the owner's catalog; to be used under a lease. */
  CatalogView catalog();

  /**
   * The segment that a block lies in, mapped now if it was not yet; absent if the owner has none of
   * this id.
   *
   * @throws io.zerohop.device.ZerohopException (FALLBACK) if memory of its tier cannot be mapped
   */
  @Nullable SegmentMemory blockSegment(long segmentId);

  /**
   * Returns whether what was read under a lease that is still open was what the owner had put
   * there. False if the owner dropped the lease, because the connection to it was lost while it
   * lives on. Does not wait, and no thread has to have noticed anything before: see {@link
   * LanePool#intact}.
   */
  boolean intact();

  /**
   * Returns whether the owner has ended and a keeper holds what it left: what is not there, or is
   * not ready, is lost.
   */
  default boolean isLeft() {
    return false;
  }

  /** Returns whether the owner lives, as far as is known: what it had begun will come. */
  boolean alive();
}
