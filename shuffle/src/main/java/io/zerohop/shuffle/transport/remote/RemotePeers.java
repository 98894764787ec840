package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.Message;
import io.zerohop.device.WaitException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The owners that this executor reads by one carrier. Each is connected when a reader first needs
 * it, and again after a loss or a long idle time. Thread safe; owns the contacts.
 */
public final class RemotePeers<P extends RemotePeer> implements AutoCloseable {
  private final Connector<P> connector;
  private final Config conf;
  private final Clock clock;
  private final Map<Long, Contact<P>> contacts = new ConcurrentHashMap<>();
  private volatile boolean closed;

  /** Connects an owner. Thread safe. */
  public interface Connector<P extends RemotePeer> {

    /**
     * Returns how long others wait for the thread that connects; then they continue without a
     * connection.
     */
    Duration limit();

    /**
     * Connects to an owner. Called by one thread at a time for each owner; waits for a limited
     * time.
     *
     * @return owned by the caller
     * @throws ExchangeException if it cannot be asked
     * @throws CarrierException if bytes do not come from it
     */
    P connect(BlockSource source);
  }

  /**
   * The owners of one carrier.
   *
   * @param connector how they are connected
   * @param conf says how long answers, copies on GPUs and idle connections may take
   */
  public RemotePeers(final Connector<P> connector, final Config conf, final Clock clock) {
    this.connector = connector;
    this.conf = conf;
    this.clock = clock;
  }

  /** The owner, if it is connected. Does not wait. */
  public @Nullable P connected(final Location location) {
    final Contact<P> contact = contacts.get(location.incarnation());
    return contact == null ? null : contact.connected();
  }

  /** Returns whether the owner was connected before: then it is dead if nobody answers any more. */
  public boolean hasMet(final Location location) {
    final Contact<P> contact = contacts.get(location.incarnation());
    return contact != null && contact.hasMet();
  }

  /**
   * Connects to an owner unless it is. Waits for a limited time.
   *
   * @throws ExchangeException if it cannot be asked
   * @throws CarrierException if bytes do not come from it
   * @throws WaitException (RETRY) if interrupted
   */
  public P connect(final BlockSource source) {
    final long incarnation = source.knownLocation().incarnation();
    final Contact<P> contact = contacts.computeIfAbsent(incarnation, first -> new Contact<>(clock));
    final P known = contact.connected();
    if (known != null) {
      return known;
    }
    final String executorId = source.executorId();
    contact.lock(connector.limit(), executorId);
    try {
      final P meanwhile = contact.connected();
      return meanwhile != null ? meanwhile : meet(contact, source);
    } finally {
      contact.unlock();
    }
  }

  private P meet(final Contact<P> contact, final BlockSource source) {
    final RuntimeException recent = contact.recentFailure();
    if (recent != null) {
      throw recent;
    }
    try {
      if (closed) {
        throw new ExchangeException(Reason.CLOSED, "this executor is shutting down");
      }
      final P peer = connector.connect(source);
      contact.connected(peer);
      if (closed) {
        peer.close(); // Who closes may have passed it.
      }
      return peer;
    } catch (final WaitException e) {
      throw e;
    } catch (final RuntimeException e) {
      if (Thread.currentThread().isInterrupted()) {
        throw Contact.cancelled(source.executorId()); // That says nothing of the owner.
      }
      final RuntimeException why =
          e instanceof ExchangeException || e instanceof CarrierException
              ? e
              : new CarrierException(
                  Message.of("an executor cannot be read")
                      .at("executor " + source.executorId())
                      .because(e),
                  e);
      contact.failed(why);
      throw why;
    }
  }

  /**
   * Gives up peers from which nothing comes although something should, and disconnects from those
   * that nobody has read for long.
   */
  public void check() {
    final long nanos = conf.requestTimeout().toNanos() / 2;
    final long ofTransfer = Math.max(nanos, conf.device().timeout().toNanos());
    final long idle = conf.ucx().idle().toNanos();
    contacts.values().forEach(contact -> contact.check(nanos, ofTransfer, idle));
  }

  /** Owners that are connected. */
  public int connected() {
    return (int) contacts.values().stream().filter(it -> it.connected() != null).count();
  }

  @Override
  public void close() {
    closed = true;
    contacts.values().forEach(Contact::close);
  }

  /**
   * The state of one owner, met or not: its connection, and after a failure when to try again.
   * Threads connect one at a time, with the lock held; the connection may be looked at by any. Owns
   * the connection.
   */
  private static final class Contact<P extends RemotePeer> {
    private static final Duration FIRST_PAUSE = Duration.ofSeconds(1);
    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(30);

    private final Clock clock;
    private final ReentrantLock lock = new ReentrantLock();
    private final AtomicReference<@Nullable P> peer = new AtomicReference<>();
    private volatile boolean met;
    private int failures;
    private @Nullable RuntimeException failure;
    private long retryAt;

    Contact(final Clock clock) {
      this.clock = clock;
    }

    /** The connection, if it stands. */
    @Nullable P connected() {
      final P known = peer.get();
      return known != null && known.alive() ? known : null;
    }

    /** Whether it was ever connected: then it is dead if nobody answers any more. */
    boolean hasMet() {
      return met;
    }

    /**
     * Waits until no other thread connects.
     *
     * @throws ExchangeException (BUSY) if one still does after the limit
     * @throws WaitException if interrupted
     */
    void lock(final Duration limit, final String executorId) {
      try {
        if (clock.tryLock(lock, limit)) {
          return;
        }
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
        throw cancelled(executorId);
      }
      throw new ExchangeException(
          Reason.BUSY, "another thread is still connecting to executor " + executorId);
    }

    void unlock() {
      lock.unlock();
    }

    static WaitException cancelled(final String executorId) {
      return new WaitException(
          WaitException.Reason.CANCELLED, "interrupted while connecting to executor " + executorId);
    }

    /** Why it could not be connected, while it is too early to try again. Locked. */
    @Nullable RuntimeException recentFailure() {
      return failure != null && !clock.isOver(retryAt) ? failure : null;
    }

    /** Keeps a connection that stands. Locked. */
    void connected(final P made) {
      peer.set(made);
      met = true;
      failures = 0;
      failure = null;
    }

    /** The next try has to wait, each time longer. Locked. */
    void failed(final RuntimeException why) {
      final long pause =
          Math.min(
              LONGEST_PAUSE.toNanos(), FIRST_PAUSE.toNanos() << Math.min(failures, Long.SIZE / 4));
      failures++;
      failure = why;
      retryAt = clock.nanos() + pause;
    }

    /**
     * Gives a connection up from which nothing comes although something should, or that nobody has
     * used for long.
     */
    void check(final long nanos, final long transferNanos, final long idleNanos) {
      final P known = peer.get();
      if (known == null) {
        return;
      }
      known.checkStalled(nanos, transferNanos);
      known.closeIdle(idleNanos);
      if (!known.alive()) {
        peer.compareAndSet(
            known, null); // Executors come and go; what is left of them must not grow.
      }
    }

    /** Ends the connection, if there is one. */
    void close() {
      final P known = peer.get();
      if (known != null) {
        known.close();
      }
    }
  }
}
