package io.zerohop.shuffle.transport.remote.connect;

import io.zerohop.device.WaitException;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.ExchangeException.Reason;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.remote.reader.RemotePeer;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The state of one owner, connected or not: its connection, and after a failure the time of the
 * next attempt. One thread at a time connects, with the lock held; the connection may be looked at
 * by any. Owns the connection.
 */
final class Contact<P extends RemotePeer> {
  private static final Duration FIRST_PAUSE = Duration.ofSeconds(1);
  private static final Duration LONGEST_PAUSE = Duration.ofSeconds(30);

  private final Clock clock;
  private final ReentrantLock lock = new ReentrantLock();
  private final AtomicReference<P> peer = new AtomicReference<>();
  private volatile boolean met;
  private int failures;
  private RuntimeException failure;
  private long retryAt;

  Contact(final Clock clock) {
    this.clock = clock;
  }

  /** The connection if it stands; else null. */
  P connected() {
    final P known = peer.get();
    return known != null && known.alive() ? known : null;
  }

  /** Returns whether it was ever connected: then it is dead if nobody answers any more. */
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

  /** Returns the failure to connect, while it is too early to try again; else null. Locked. */
  RuntimeException recentFailure() {
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
      peer.compareAndSet(known, null); // Executors come and go; what is left of them must not grow.
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
