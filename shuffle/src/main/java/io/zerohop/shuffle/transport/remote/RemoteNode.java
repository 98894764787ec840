package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.Message;
import io.zerohop.device.Undo;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import io.zerohop.shuffle.transport.remote.RemoteService.RemoteThreads;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;

/**
 * An executor's part of one way between nodes: the owners that it reads by it, and the readers
 * elsewhere that it serves. An owner is connected when a reader first needs it, and again after a
 * loss or a long idle time. Thread safe; owns both.
 *
 * @param <P> owners that are read
 */
public abstract class RemoteNode<P extends RemotePeer> implements AutoCloseable {
  protected final RemoteThreads threads;
  protected final Slabs slabs;
  private final RemoteService<?> service;
  protected final Config conf;
  protected final Clock clock;
  private final Map<Long, Contact> contacts = new ConcurrentHashMap<>();
  private volatile boolean closed;
  private volatile boolean alive = true;

  /**
   * @param service has the configuration, which says how long answers, copies on GPUs and idle
   *     connections may take, and the clock
   * @param slabs that bytes are received in; {@link #free} frees them
   */
  protected RemoteNode(
      final RemoteService<?> service, final RemoteThreads threads, final Slabs slabs) {
    this.service = service;
    this.threads = threads;
    this.slabs = slabs;
    this.conf = service.conf;
    this.clock = service.clock;
  }

  /**
   * Makes a node, or says in the log why it cannot be used here: blocks can go another way.
   *
   * @param unavailable begins what the log says
   * @param debug is what it says above the stack trace
   * @param making makes it, and adds what it has begun; gives none if it has said itself why there
   *     is none
   * @return absent if there is none; all that was begun is undone then
   */
  protected static <N> @Nullable N begin(
      final Message unavailable,
      final String debug,
      final Logger log,
      final Function<Undo, @Nullable N> making) {
    try (Undo begun = new Undo()) {
      final N node = making.apply(begun);
      return node == null ? null : begun.keep(node);
    } catch (final RuntimeException | LinkageError | OutOfMemoryError e) {
      // Whatever it is, blocks can go another way. Netty says by an error that there is no thread.
      unavailable.because(e).info(log);
      log.debug(debug, e);
      warnNotUndone(e, log);
      return null;
    }
  }

  /** Says of each failure that a failed start has suppressed that something stays behind. */
  public static void warnNotUndone(final Throwable failed, final Logger log) {
    for (final Throwable failure : failed.getSuppressed()) {
      ShuffleCode.START_NOT_UNDONE.says("failed to roll back a partial start").warn(log, failure);
    }
  }

  /**
   * Makes sure that an owner can be read, which takes a limited time when it is met for the first
   * time or was lost.
   *
   * @return the owner, which stays this node's
   * @throws ExchangeException if it cannot be asked
   * @throws CarrierException if its blocks cannot come this way
   * @throws WaitException (RETRY) if interrupted
   */
  public P connect(final BlockSource source) {
    final long incarnation = source.knownLocation().incarnation();
    return contacts.computeIfAbsent(incarnation, first -> new Contact()).connect(source);
  }

  /**
   * Connects to an owner. Called by one thread at once for each owner; waits for a limited time.
   *
   * @return owned by the caller
   * @throws ExchangeException if it cannot be asked
   * @throws CarrierException if bytes do not come from it
   */
  protected abstract P connectTo(BlockSource source);

  /**
   * Returns how long others wait for the thread that connects to an owner; then they continue
   * without a connection.
   */
  protected Duration connectLimit() {
    return conf.connectTimeout().plus(conf.requestTimeout());
  }

  /** The owner, if it is connected. Does not wait. */
  protected final @Nullable P connectedPeer(final Location location) {
    final Contact contact = contacts.get(location.incarnation());
    return contact == null ? null : contact.connected();
  }

  /** Returns whether an owner is connected. */
  public final boolean isConnected(final Location location) {
    return connectedPeer(location) != null;
  }

  /** Returns whether the owner was connected before: then it is dead if nobody answers any more. */
  public final boolean hasMet(final Location location) {
    final Contact contact = contacts.get(location.incarnation());
    return contact != null && contact.met;
  }

  /**
   * Returns an owner that was connected.
   *
   * @throws ZerohopException (RETRY) if it is not any more
   */
  protected final P peerOf(final BlockSource source) {
    final P peer = connectedPeer(source.knownLocation());
    if (peer == null) {
      throw new ZerohopException(
          ZerohopException.Category.RETRY,
          "the connection to executor " + source.executorId() + " was lost");
    }
    return peer;
  }

  /**
   * Small chores that nobody waits for. Among them, gives up owners from which nothing comes
   * although something should, and disconnects from those that nobody has read for long.
   */
  public void maintain() {
    contacts.values().forEach(Contact::check);
    service.maintain();
    threads.maintain();
    slabs.trim();
  }

  /** Owners on other nodes that are connected. */
  public final int connected() {
    return (int) contacts.values().stream().filter(it -> it.connected() != null).count();
  }

  /** Readers on other nodes that are connected. */
  public final int readers() {
    return service.readers();
  }

  /** Leases that readers on other nodes hold here. */
  public final int leases() {
    return service.leases();
  }

  /** What came here from outside and belongs to nothing: connections, or messages. */
  public abstract long strangers();

  /** Pieces of host memory that bytes pass through now, each shared by many blocks. */
  public final int slabsTaken() {
    return slabs.taken();
  }

  /** Returns whether this node's memory may still be read or written although it was closed. */
  public final boolean isAlive() {
    return alive;
  }

  /** Ends what is under way, both ways, and frees everything. Takes a limited time. Idempotent. */
  @Override
  public final void close() {
    closed = true;
    contacts.values().forEach(Contact::close);
    alive = !end();
    if (!alive) {
      service.close();
      free();
    }
  }

  /**
   * Ends what moves bytes, and the threads.
   *
   * @return false, which is said in the log, if something may still use this node's memory
   */
  protected abstract boolean end();

  /** Frees what nothing uses any more. */
  protected abstract void free();

  /**
   * The state of one owner, met or not: its connection, and after a failure when to try again.
   * Threads connect one at a time, with the lock held; the connection may be looked at by any. Owns
   * the connection.
   */
  private final class Contact {
    private static final Duration FIRST_PAUSE = Duration.ofSeconds(1);
    private static final Duration LONGEST_PAUSE = Duration.ofSeconds(30);

    private final ReentrantLock lock = new ReentrantLock();
    private final AtomicReference<@Nullable P> peer = new AtomicReference<>();

    /** Whether it was ever connected. */
    private volatile boolean met;

    // The rest is only used under the lock.
    private int failures;
    private @Nullable RuntimeException failure;
    private long retryAt;

    /** The connection, if it stands. */
    @Nullable P connected() {
      final P known = peer.get();
      return known != null && known.alive() ? known : null;
    }

    P connect(final BlockSource source) {
      final P known = connected();
      if (known != null) {
        return known;
      }
      lock(source.executorId());
      try {
        final P meanwhile = connected();
        return meanwhile != null ? meanwhile : meet(source);
      } finally {
        lock.unlock();
      }
    }

    /** Waits until no other thread connects. */
    private void lock(final String executorId) {
      try {
        if (clock.tryLock(lock, connectLimit())) {
          return;
        }
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
        throw cancelled(executorId);
      }
      throw new ExchangeException(
          Reason.BUSY, "another thread is still connecting to executor " + executorId);
    }

    private static WaitException cancelled(final String executorId) {
      return new WaitException(
          WaitException.Reason.CANCELLED, "interrupted while connecting to executor " + executorId);
    }

    /** Connects, unless it is too early to try again. Locked. */
    private P meet(final BlockSource source) {
      if (failure != null && !clock.isOver(retryAt)) {
        throw failure;
      }
      try {
        if (closed) {
          throw new ExchangeException(Reason.CLOSED, "this executor is shutting down");
        }
        final P made = connectTo(source);
        peer.set(made);
        met = true;
        failures = 0;
        failure = null;
        if (closed) {
          made.close(); // Who closes may have passed it.
        }
        return made;
      } catch (final WaitException e) {
        throw e;
      } catch (final RuntimeException e) {
        if (Thread.currentThread().isInterrupted()) {
          throw cancelled(source.executorId()); // That says nothing of the owner.
        }
        final RuntimeException why =
            e instanceof ExchangeException || e instanceof CarrierException
                ? e
                : new CarrierException(
                    Message.of("an executor cannot be read")
                        .at("executor " + source.executorId())
                        .because(e),
                    e);
        failed(why);
        throw why;
      }
    }

    /** The next try has to wait, each time longer. Locked. */
    private void failed(final RuntimeException why) {
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
    void check() {
      final P known = peer.get();
      if (known != null && !known.check(conf)) {
        // Executors come and go; what is left of them must not grow.
        peer.compareAndSet(known, null);
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
