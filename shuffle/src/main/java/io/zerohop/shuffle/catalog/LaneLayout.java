package io.zerohop.shuffle.catalog;

/**
 * Lanes: the words by which readers tell the owner what they may still be reading. A lane has a
 * cache line of its own and serves one lease at a time.
 *
 * <pre>
 *  0          4          8                64
 *  | taken    | done     | zero           |
 * </pre>
 *
 * <p>A lease is open while {@code taken != done}. Both words only grow (cyclically) and are never
 * reset. Lanes come in blocks: the first {@link #LOCAL_LANES} belong to the owner's own readers,
 * then one block of {@link #PEER_LANES} for each connected peer.
 *
 * <p>Memory order, see docs/leases.md: a reader stores {@code taken} and issues a full fence before
 * it looks anything up; it stores {@code done} with release order after its last read. The owner
 * unpublishes, issues a full fence, and then reads {@code taken}; it reads {@code done} with
 * acquire order before it reuses memory.
 */
public final class LaneLayout {
  static final int TAKEN = 0;
  static final int DONE = 4;
  static final int LANE_BYTES = 64;

  static final int LOCAL_LANES = 1024;
  static final int PEER_LANES = 128;
  static final int PEER_BLOCKS = 128;
  static final int LANES = LOCAL_LANES + PEER_BLOCKS * PEER_LANES;

  private LaneLayout() {}

  /** Index of the first lane of a block; block 0 is the owner's. */
  static int firstLane(final int block) {
    return block == 0 ? 0 : LOCAL_LANES + (block - 1) * PEER_LANES;
  }

  /** Lanes of a block. */
  static int lanes(final int block) {
    return block == 0 ? LOCAL_LANES : PEER_LANES;
  }
}
