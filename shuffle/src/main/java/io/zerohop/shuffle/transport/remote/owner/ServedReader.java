package io.zerohop.shuffle.transport.remote.owner;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.remote.carrier.Carrier;
import io.zerohop.shuffle.transport.remote.carrier.Road;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One reader's connection as its owner sees it: the leases it holds and the way back to it. Both
 * end with the connection. Thread safe.
 */
public final class ServedReader {
  private static final Logger LOG = LoggerFactory.getLogger(ServedReader.class);

  private final Carrier carrier;
  private final Executor executor;
  private final Consumer<ServedLease> left;
  private final Clock clock;
  private final Map<Long, ServedLease> leases = new ConcurrentHashMap<>();

  /** When transfers began that are still being sent. */
  private final Map<Long, Long> sending = new ConcurrentHashMap<>();

  @GuardedBy("this")
  private byte[] address;

  /** The way to the reader while it is good; null before the first message, and after a loss. */
  @GuardedBy("this")
  private Back back;

  @GuardedBy("this")
  private boolean gone;

  /** A road, which the carrier's thread marks as lost before anything else is done about it. */
  private static final class Back {
    private volatile boolean lost;
    private Road road;
  }

  /**
   * @param executor runs what a carrier's thread must not wait for
   * @param left takes over leases that the reader did not end itself
   * @param clock by which what is sent takes its time
   */
  ServedReader(
      final Carrier carrier,
      final Executor executor,
      final Consumer<ServedLease> left,
      final Clock clock) {
    this.carrier = carrier;
    this.executor = executor;
    this.left = left;
    this.clock = clock;
  }

  /** The reader has said where it is. */
  synchronized void address(final byte[] told) {
    address = told;
  }

  /**
   * The way to the reader. May wait for the carrier, a limited time.
   *
   * @throws ZerohopException (FALLBACK) if it cannot be reached or has not said where it is
   */
  public synchronized Road back() {
    if (address == null || gone) {
      throw new ZerohopException(
          ZerohopException.Category.FALLBACK, "the reader is gone or has not introduced itself");
    }
    if (back != null && back.lost) {
      drop(back);
    }
    if (back == null) {
      final Back next = new Back();
      next.road = carrier.connect(address, why -> lost(next, why));
      back = next;
    }
    return back.road;
  }

  /**
   * Told by the carrier's thread, which must not wait: a thread inside {@link #back} may be waiting
   * for it.
   */
  private void lost(final Back road, final String why) {
    LOG.debug("a reader was lost: {}", why);
    road.lost = true;
    executor.execute(() -> drop(road));
  }

  private synchronized void dropCurrent() {
    drop(back);
  }

  /** The next message goes by a new road. Does nothing where that one has come already. */
  private synchronized void drop(final Back road) {
    if (back == road && road != null) {
      back = null;
      road.road.close();
    }
  }

  /** Keeps a lease for the reader; left at once if the reader is gone. */
  void hold(final long id, final ServedLease lease) {
    leases.put(id, lease);
    final boolean late;
    synchronized (this) {
      late = gone;
    }
    if (late) {
      leave(id);
    }
  }

  /** A lease that is held, with a reference for the caller; null if it is not held (any more). */
  ServedLease find(final long id) {
    final ServedLease lease = leases.get(id);
    // The reader may end it right now, so that what was found here is released already.
    return lease != null && lease.retain() ? lease : null;
  }

  /** Bytes of the blocks of a lease; 0 if it is not held. */
  long bytes(final long id) {
    final ServedLease lease = leases.get(id);
    return lease == null ? 0 : lease.bytes();
  }

  /** Ends a lease whose reader has passed; says whether it was held until now. */
  boolean drop(final long id) {
    final ServedLease lease = leases.remove(id);
    if (lease != null) {
      lease.release();
    }
    return lease != null;
  }

  private boolean leave(final long id) {
    final ServedLease lease = leases.remove(id);
    if (lease != null) {
      lease.leave();
      left.accept(lease);
    }
    return lease != null;
  }

  /** Messages of a transfer are on their way to the reader, until {@link #sent}. */
  void sends(final long transfer) {
    sending.put(transfer, clock.nanos());
  }

  /** None of them is any more. */
  void sent(final long transfer) {
    sending.remove(transfer);
  }

  /**
   * Leaves leases that are older than a reader may take. If it has not even taken what was sent to
   * it, the way to it is closed, with which all of that ends: it holds memory of this process, and
   * a place that others wait for.
   */
  void expire(final long nanos) {
    final long now = clock.nanos();
    if (sending.values().stream().anyMatch(since -> now - since > nanos)) {
      sending.replaceAll((transfer, since) -> now); // It ends in the background.
      ShuffleCode.SEND_NOT_TAKEN.warn(
          LOG,
          "a reader on another node has not taken what was sent to it for {} s; it will ask again",
          nanos / 1_000_000_000);
      dropCurrent();
    }
    leases.forEach(
        (id, lease) -> {
          if (lease.ageNanos() > nanos && leave(id)) {
            ShuffleCode.LEASE_EXPIRED.warn(
                LOG,
                "a reader on another node has not read {} blocks in {} s; it will ask again",
                lease.extents().blocks(),
                nanos / 1_000_000_000);
          }
        });
  }

  int leases() {
    return leases.size();
  }

  /** Ends everything. Idempotent. */
  void close() {
    synchronized (this) {
      gone = true;
    }
    dropCurrent();
    leases.keySet().forEach(this::leave);
  }
}
