package io.zerohop.shuffle.transport.remote.carrier;

/**
 * Assigns a place in memory to arriving bytes. Called by the carrier's threads, which must not be
 * blocked.
 */
public interface Arrivals {

  /**
   * A message has come. If an address is returned, {@link #arrived} or {@link #damaged} follows
   * once.
   *
   * @param id names the transfer
   * @param offset where the bytes go in it
   * @param stop run at most once, by any thread, when nobody waits for the transfer any more, since
   *     the rest of the message may never come: has the carrier write no more, and say that the
   *     message has arrived or failed
   * @return where they go, memory that stays mapped until they have arrived; 0 to drop them
   */
  long arriving(long id, long offset, long bytes, Runnable stop);

  /**
   * A message that was to arrive has done so, or failed.
   *
   * @param failure what the carrier says; null if all bytes are there
   */
  void arrived(long id, long offset, long bytes, String failure);

  /**
   * Messages of a transfer that were to come will not, although nothing of them was announced.
   *
   * @param why what the carrier says
   */
  default void lost(final long id, final String why) {}

  /**
   * A message that was to arrive has done so, but with other bytes than were sent; instead of
   * {@link #arrived}.
   */
  default void damaged(final long id, final long offset, final long bytes) {
    arrived(id, offset, bytes, "it was damaged on its way");
  }
}
