package io.zerohop.shuffle.lease;

/**
 * The layout of lanes: words by which readers tell the owner what they may still be reading. A lane
 * has a cache line of its own and serves one lease at a time.
 *
 * <pre>
 *  0          4          8                16                64
 *  | taken    | done     | generation (64) | zero             |
 * </pre>
 *
 * <p>A lease is open while {@code taken != done}. Both words only grow (cyclically) and are never
 * reset. Lanes come in blocks: the first {@link #LOCAL_LANES} belong to the owner's own readers,
 * then one block of {@link #PEER_LANES} for each connected peer.
 *
 * <p>{@code generation} counts how often the owner dropped the leases of a block, whatever they
 * said: its peer's connection was lost, or given up by either side. It stands in the first lane of
 * each block, and the owner alone writes it. An owner that froze its memory leaves it as it is,
 * since nothing that a reader may have found changes any more; that of a dead owner stays too.
 *
 * <p>Memory order, see docs/leases.md: a reader stores {@code taken} and issues a full fence before
 * it looks anything up; it stores {@code done} with release order after its last read. The owner
 * unpublishes, issues a full fence, and then reads {@code taken}; it reads {@code done} with
 * acquire order before it reuses memory. The owner that drops a block stores its {@code generation}
 * and issues a full fence <em>before</em> anybody is told that the leases of the block are over; so
 * the store is in front of every store into memory that they held. A reader issues a full fence
 * behind its last read and then loads {@code generation}: if it read anything of what came after
 * the leases, it finds another generation there. The news of a closed socket comes by another
 * thread, at any time, and proves nothing.
 */
public final class LaneLayout {
  static final int TAKEN = 0;
  static final int DONE = 4;
  static final int GENERATION = 8;
  static final int LANE_BYTES = 64;

  static final int LOCAL_LANES = 1024;
  static final int PEER_LANES = 128;
  static final int PEER_BLOCKS = 128;
  public static final int LANES = LOCAL_LANES + PEER_BLOCKS * PEER_LANES;

  /** What all lanes take. */
  public static final int BYTES = LANES * LANE_BYTES;

  private LaneLayout() {}

  /** Index of the first lane of a block; block 0 is the owner's. */
  static int firstLane(final int block) {
    return block == 0 ? 0 : LOCAL_LANES + (block - 1) * PEER_LANES;
  }

  /** Returns the offset of a lane, in bytes from the first one. */
  static int offset(final int lane) {
    return lane * LANE_BYTES;
  }

  /** Returns the offset of a block's generation, in bytes from the first lane. */
  static int generationOffset(final int block) {
    return offset(firstLane(block)) + GENERATION;
  }

  /** Lanes of a block. */
  static int lanes(final int block) {
    return block == 0 ? LOCAL_LANES : PEER_LANES;
  }
}
