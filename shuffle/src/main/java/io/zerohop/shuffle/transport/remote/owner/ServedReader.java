package io.zerohop.shuffle.transport.remote.owner;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.log.ShuffleCode;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** One reader's connection at its owner: its leases, which end with the connection. Thread safe. */
public class ServedReader {
  private static final Logger LOG = LoggerFactory.getLogger(ServedReader.class);

  private final Consumer<ServedLease> left;
  private final Clock clock;
  private final Map<Long, ServedLease> leases = new ConcurrentHashMap<>();

  @GuardedBy("this")
  private boolean gone;

  /**
   * A reader without leases.
   *
   * @param left takes over leases that the reader did not end itself
   * @param clock by which it takes its time
   */
  public ServedReader(final Consumer<ServedLease> left, final Clock clock) {
    this.left = left;
    this.clock = clock;
  }

  final Clock clock() {
    return clock;
  }

  final synchronized boolean isGone() {
    return gone;
  }

  /** Keeps a lease for the reader; left at once if the reader is gone. */
  final void hold(final long id, final ServedLease lease) {
    leases.put(id, lease);
    if (isGone()) {
      leave(id);
    }
  }

  /** A lease, with a reference for the caller, if it is held (still). */
  final @Nullable ServedLease find(final long id) {
    final ServedLease lease = leases.get(id);
    // The reader may end it right now, so that what was found here is released already.
    return lease != null && lease.retain() ? lease : null;
  }

  /** Bytes of the blocks of a lease; 0 if it is not held. */
  final long bytes(final long id) {
    final ServedLease lease = leases.get(id);
    return lease == null ? 0 : lease.bytes();
  }

  /** Ends a lease whose reader has passed; says whether it was held until now. */
  final boolean drop(final long id) {
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

  /** Leaves leases that are older than a reader may take. */
  void expire(final long nanos) {
    leases.forEach(
        (id, lease) -> {
          if (lease.ageNanos() > nanos && leave(id)) {
            ShuffleCode.LEASE_EXPIRED
                .says(
                    "a reader on another node did not read "
                        + lease.extents().blocks()
                        + " blocks in "
                        + nanos / 1_000_000_000
                        + " s; its lease ended, and it will ask again")
                .warn(LOG);
          }
        });
  }

  final int leases() {
    return leases.size();
  }

  /** Ends everything. Idempotent. */
  void close() {
    synchronized (this) {
      gone = true;
    }
    leases.keySet().forEach(this::leave);
  }
}
