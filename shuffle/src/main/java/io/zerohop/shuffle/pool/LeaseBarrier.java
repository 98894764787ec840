package io.zerohop.shuffle.pool;

/** Tracks the leases that are open now. */
@FunctionalInterface
public interface LeaseBarrier {

  /**
   * Remembers every lease that is open now. What was unpublished before the call is in use by none
   * but those: the call is a full fence between the unpublishing and the look at the leases.
   */
  Snapshot snapshot();

  /** The leases that were open at one moment. */
  @FunctionalInterface
  interface Snapshot {
    /**
     * Returns whether all of them have ended, or their readers are gone; once true, always true.
     */
    boolean passed();
  }
}
