package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.ZerohopException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One reader's connection as its owner sees it: the leases it holds and the way back to it. Both
 * end with the connection. Thread safe.
 */
final class ServedReader {
  private static final Logger LOG = LoggerFactory.getLogger(ServedReader.class);

  private final UcxEngine engine;
  private final Map<Long, ServedLease> leases = new ConcurrentHashMap<>();
  private byte[] address;
  private UcxEndpoint back;
  private boolean gone;

  ServedReader(final UcxEngine engine) {
    this.engine = engine;
  }

  /** The reader has said where it is. */
  synchronized void address(final byte[] worker) {
    address = worker;
  }

  /**
   * The way to the reader.
   *
   * @throws ZerohopException (FALLBACK) if it cannot be reached or has not said where it is
   */
  synchronized UcxEndpoint back() {
    if (address == null || gone) {
      throw new ZerohopException(
          ZerohopException.Category.FALLBACK, "the reader is gone or has not introduced itself");
    }
    if (back == null) {
      back = engine.connect(address, this::lost);
    }
    return back;
  }

  /** The next message goes by a new endpoint. */
  private void lost(final String why) {
    LOG.debug("UCX lost a reader: {}", why);
    final UcxEndpoint old;
    synchronized (this) {
      old = back;
      back = null;
    }
    if (old != null) {
      old.close();
    }
  }

  /** Keeps a lease for the reader; at once released if the reader is gone. */
  void hold(final long id, final ServedLease lease) {
    leases.put(id, lease);
    final boolean late;
    synchronized (this) {
      late = gone;
    }
    if (late) {
      drop(id);
    }
  }

  /** A lease that is held, with a reference for the caller; null if it is not held (any more). */
  ServedLease find(final long id) {
    final ServedLease lease = leases.get(id);
    if (lease != null) {
      lease.retain();
    }
    return lease;
  }

  /** Ends a lease; says whether it was held until now. */
  boolean drop(final long id) {
    final ServedLease lease = leases.remove(id);
    if (lease != null) {
      lease.release();
    }
    return lease != null;
  }

  /** Ends leases that are older than a reader may take. */
  void expire(final long nanos) {
    leases.forEach(
        (id, lease) -> {
          if (lease.ageNanos() > nanos && drop(id)) {
            LOG.warn(
                "a reader on another node has not read {} blocks in time; it will ask again",
                lease.extents().blocks());
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
    lost("its connection has ended");
    leases.keySet().forEach(this::drop);
  }
}
