package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.ControlChannel.ControlService;
import io.zerohop.shuffle.transport.remote.RemoteService.RemoteThreads;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * Carries bytes between this executor and others, with requests about them and their responses.
 * Thread safe; whoever started it owns and ends it.
 */
public interface Carrier {

  /**
   * Returns the address by which others reach this executor; opaque to all but the same carrier.
   * Not to be changed.
   */
  byte[] address();

  /**
   * A way to another executor. May wait for a limited time, though not for an answer: an executor
   * that is not there shows in what is sent to it. Called by threads that send nothing.
   *
   * @param address what {@link #address} gave there
   * @return owned by the caller
   * @throws CarrierException if the address is none, or cannot be reached from here
   */
  Road connect(byte[] address);

  /** Returns the sizes of its messages. */
  MessageSizes sizes();

  /**
   * Sets the receiver of arriving bytes, and the service that answers requests; called before
   * anybody knows the address, or that this executor can be asked.
   */
  void serve(Arrivals arrivals, ControlService service);

  /**
   * A link by which an owner is asked. Waits no longer than the limit.
   *
   * @return owned by the caller
   * @throws io.zerohop.device.exchange.ExchangeException if it cannot be
   */
  ControlLink link(BlockSource owner, Duration limit);

  /**
   * Runs small chores: ends requests that were not answered in time, and removes executors that are
   * gone.
   */
  void maintain();

  /** Messages, since the start, that nobody here had asked for. */
  long strangers();

  /** Bytes, since the start, that compression has kept from the network. */
  long savedBytes();

  /** Returns a description for the log. */
  String describe();

  /**
   * Ends what is under way, with a failure. Waits for a limited time. Idempotent.
   *
   * @return false if something may still read memory that was to be sent
   */
  boolean end();

  /**
   * A connection to one other executor, over which messages are sent. Once the other is found to be
   * lost it is closed. Thread safe; calls return at once.
   */
  interface Road extends AutoCloseable {

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

    /** Returns whether it was neither closed nor lost, as far as is known. */
    boolean alive();

    /** Gives up what is under way, whose completions follow, and disconnects. Idempotent. */
    @Override
    void close();
  }

  /**
   * The message sizes of a carrier.
   *
   * @param longest most bytes of one message, and of small pieces that are copied together
   * @param atOnce messages of one transfer that are under way at a time
   */
  record MessageSizes(int longest, int atOnce) {}

  /**
   * Assigns a place in memory to arriving bytes. Called by the carrier's threads, which must not be
   * blocked.
   */
  interface Arrivals {

    /**
     * A message has come. If an address is returned, {@link #arrived} or {@link #damaged} follows
     * once.
     *
     * @param id names the transfer
     * @param offset where the bytes go in it
     * @param stop run at most once, by any thread, when nobody waits for the transfer any more,
     *     since the rest of the message may never come: has the carrier write no more, and say that
     *     the message has arrived or failed
     * @return where they go, memory that stays mapped until they have arrived; 0 to drop them
     */
    long arriving(long id, long offset, long bytes, Runnable stop);

    /**
     * A message that was to arrive has done so, or failed.
     *
     * @param failure what the carrier says; absent if all bytes are there
     */
    void arrived(long id, long offset, long bytes, @Nullable String failure);

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

  /** Starts a carrier in this process. */
  @FunctionalInterface
  interface CarrierStarter {

    /**
     * Starts it.
     *
     * @param threads for what the carrier's own must not do; the caller's
     * @param slabs memory for what a carrier has to copy; the caller's
     * @param clock by which the carrier's limits are measured
     * @return owned by the caller
     * @throws CarrierException if it cannot be used here
     */
    Carrier start(RemoteThreads threads, Slabs slabs, Clock clock);
  }

  /**
   * Thrown if there is no carrier, or if it does not reach another executor; blocks take another
   * path (FALLBACK).
   */
  class CarrierException extends ZerohopException {
    private static final long serialVersionUID = 1L;

    public CarrierException(final String what, final @Nullable Throwable cause) {
      this(Message.of(what), cause);
    }

    public CarrierException(final Message message, final @Nullable Throwable cause) {
      super(Category.FALLBACK, message, cause);
    }
  }

  /** The end of a request. Called once, by a carrier's thread, which must not be blocked. */
  @FunctionalInterface
  public interface Completion {

    /**
     * The request has ended.
     *
     * @param failure what the carrier says of it; absent if it succeeded
     */
    void done(@Nullable String failure);
  }
}
