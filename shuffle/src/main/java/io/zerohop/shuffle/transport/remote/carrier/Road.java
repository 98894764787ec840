package io.zerohop.shuffle.transport.remote.carrier;

/**
 * A connection to one other executor, over which messages are sent. Thread safe; calls return at
 * once.
 */
public interface Road extends AutoCloseable {

  /**
   * Sends bytes to the other's {@link Arrivals}.
   *
   * @param id names the transfer
   * @param offset where the bytes go in it
   * @param address must stay mapped, and as it is, until {@code done} was called
   * @param done called once, whatever happens; success says that the bytes may be changed again
   */
  void send(long id, long offset, long address, long bytes, Completion done);

  /**
   * Tells the other's {@link Arrivals} that messages of a transfer will not come, by another
   * connection if this one is lost.
   *
   * @param id names the transfer
   */
  void lost(long id);

  /** Gives up what is under way, whose completions follow, and disconnects. Idempotent. */
  @Override
  void close();
}
