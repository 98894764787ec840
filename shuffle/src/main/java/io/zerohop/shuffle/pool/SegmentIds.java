package io.zerohop.shuffle.pool;

/**
 * The bits of a segment id: a slot of the owner's segment table and how often the slot was used. An
 * id is positive and never used again, so a stale one is noticed and never misread.
 *
 * <pre>
 *  63           12 11        0
 *  | generation   |  slot    |
 * </pre>
 */
public final class SegmentIds {
  private static final int SLOT_BITS = 12;

  /** Slots of every segment table. */
  public static final int MAX_SLOTS = 1 << SLOT_BITS;

  private SegmentIds() {}

  public static long id(final long generation, final int slot) {
    return generation << SLOT_BITS | slot;
  }

  public static int slot(final long id) {
    return (int) (id & (MAX_SLOTS - 1));
  }

  public static long generation(final long id) {
    return id >>> SLOT_BITS;
  }
}
