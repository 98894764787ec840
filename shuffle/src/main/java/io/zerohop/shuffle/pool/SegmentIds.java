package io.zerohop.shuffle.pool;

import org.jspecify.annotations.Nullable;

/**
 * The bits of a segment id: a slot of the owner's segment table, the tier, and how often the slot
 * was used. An id is positive and never used again, so a stale one is noticed and never misread.
 *
 * <pre>
 *  63           14 13   12 11        0
 *  | generation   | tier  |  slot    |
 * </pre>
 */
public final class SegmentIds {
  private static final int SLOT_BITS = 12;
  private static final int TIER_BITS = 2;
  private static final Tier[] TIERS = Tier.values();

  /** In place of a tier: a segment that is lent, and read by the id that its borrower gives it. */
  private static final int LENT = (1 << TIER_BITS) - 1;

  /** In place of a tier: GPU memory of another executor, by its borrower's id. */
  private static final int BORROWED = LENT - 1;

  /** Slots of every segment table. */
  public static final int MAX_SLOTS = 1 << SLOT_BITS;

  private SegmentIds() {}

  public static long id(final long generation, final Tier tier, final int slot) {
    return (generation << TIER_BITS | tier.ordinal()) << SLOT_BITS | slot;
  }

  /** Names a segment that is lent to a peer. */
  public static long lentId(final long generation, final int slot) {
    return (generation << TIER_BITS | LENT) << SLOT_BITS | slot;
  }

  /** Names a segment that a peer lends to this executor. */
  public static long borrowedId(final long generation, final int slot) {
    return (generation << TIER_BITS | BORROWED) << SLOT_BITS | slot;
  }

  public static int slot(final long id) {
    return (int) (id & (MAX_SLOTS - 1));
  }

  /** Returns the tier; absent if the id is of a lent segment, damaged, or of a later version. */
  public static @Nullable Tier tier(final long id) {
    final int tier = tierBits(id);
    return tier == BORROWED ? Tier.DEVICE : tier < TIERS.length ? TIERS[tier] : null;
  }

  /** Returns whether the id names a segment that its owner has borrowed. */
  public static boolean isBorrowed(final long id) {
    return tierBits(id) == BORROWED;
  }

  /** Returns whether the id names a segment that is lent. */
  public static boolean isLent(final long id) {
    return tierBits(id) == LENT;
  }

  private static int tierBits(final long id) {
    return (int) (id >>> SLOT_BITS) & ((1 << TIER_BITS) - 1);
  }
}
