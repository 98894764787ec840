package io.zerohop.shuffle.transport.remote;

import io.zerohop.device.HostBuffer;
import io.zerohop.device.posix.Clock;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Host memory for bytes received from other executors, and for small ones to be sent. Memory that
 * was returned is kept for the next request for some time: fresh pages are slow, pinned ones more
 * so. Thread safe; owns its buffers.
 */
public final class Slabs implements AutoCloseable {
  static final long MIN_BYTES = 64 << 10;

  /** Steps between a power of two and the next, so that rounding wastes an eighth at most. */
  private static final int STEPS = 8;

  private static final long IDLE_NANOS = 30_000_000_000L;

  private final LongFunction<HostBuffer> allocator;
  private final long mostIdleBytes;
  private final Clock clock;
  private final List<Idle> idle = new ArrayList<>();
  private long idleBytes;
  private int taken;
  private boolean closed;

  private record Idle(HostBuffer buffer, long since) {}

  /**
   * @param allocator gives a buffer of at least so many bytes
   * @param mostIdleBytes how much of what was returned is kept
   * @param clock by which it is idle
   */
  public Slabs(
      final LongFunction<HostBuffer> allocator, final long mostIdleBytes, final Clock clock) {
    this.allocator = allocator;
    this.mostIdleBytes = mostIdleBytes;
    this.clock = clock;
  }

  /**
   * Memory of at least so many bytes, with what others left in it.
   *
   * @throws io.zerohop.device.DeviceMemoryException (RETRY) if there is none now
   */
  public Slab take(final long bytes) {
    final long wanted = rounded(bytes);
    synchronized (this) {
      if (closed) {
        throw new IllegalStateException("the slabs are closed: this executor is shutting down");
      }
      taken++;
      final Idle fitting = fitting(wanted);
      if (fitting != null) {
        idle.remove(fitting);
        idleBytes -= fitting.buffer().bytes();
        return slab(fitting.buffer());
      }
    }
    HostBuffer fresh = null;
    try {
      fresh = allocator.apply(wanted);
      return slab(fresh);
    } finally {
      if (fresh == null) {
        synchronized (this) {
          taken--;
        }
      }
    }
  }

  private static long rounded(final long bytes) {
    final long step = Math.max(MIN_BYTES, Long.highestOneBit(bytes) / STEPS);
    return Math.max(1, (bytes + step - 1) / step) * step;
  }

  /** The least of what is idle that is long enough, and not so long that others would miss it. */
  private @Nullable Idle fitting(final long wanted) {
    Idle best = null;
    for (final Idle each : idle) {
      final long bytes = each.buffer().bytes();
      if (bytes >= wanted
          && bytes / 2 <= wanted
          && (best == null || bytes < best.buffer().bytes())) {
        best = each;
      }
    }
    return best;
  }

  private Slab slab(final HostBuffer buffer) {
    return new Slab(buffer.address(), () -> giveBack(buffer));
  }

  private void giveBack(final HostBuffer buffer) {
    synchronized (this) {
      taken--;
      if (!closed && idleBytes + buffer.bytes() <= mostIdleBytes) {
        idle.add(new Idle(buffer, clock.nanos()));
        idleBytes += buffer.bytes();
        return;
      }
    }
    buffer.close();
  }

  /** Frees what nobody has wanted for a while. */
  public void trim() {
    final List<HostBuffer> old = new ArrayList<>();
    synchronized (this) {
      final long now = clock.nanos();
      idle.removeIf(
          entry -> {
            final boolean expired = now - entry.since() > IDLE_NANOS;
            if (expired) {
              old.add(entry.buffer());
              idleBytes -= entry.buffer().bytes();
            }
            return expired;
          });
    }
    old.forEach(HostBuffer::close);
  }

  /** Slabs that are in use. */
  public synchronized int taken() {
    return taken;
  }

  /** Frees what is idle; what is in use is freed as it is returned. Idempotent. */
  @Override
  public void close() {
    final List<HostBuffer> last = new ArrayList<>();
    synchronized (this) {
      closed = true;
      idle.forEach(entry -> last.add(entry.buffer()));
      idle.clear();
      idleBytes = 0;
    }
    last.forEach(HostBuffer::close);
  }

  /**
   * Memory shared by many blocks, for bytes received from other executors or small ones to be sent.
   * It starts with one reference, the creator's, and is returned when the last one is dropped.
   * Thread safe; the bytes are the holders' to order.
   */
  public static class Slab {
    private final long address;
    private final Runnable giveBack;
    private final AtomicInteger references = new AtomicInteger(1);

    /**
     * Memory that somebody else owns.
     *
     * @param giveBack run once, by whoever drops the last reference
     */
    public Slab(final long address, final Runnable giveBack) {
      this.address = address;
      this.giveBack = giveBack;
    }

    public final long address() {
      return address;
    }

    public final void retain() {
      if (references.getAndUpdate(count -> count == 0 ? 0 : count + 1) == 0) {
        throw new IllegalStateException("memory is used after its release");
      }
    }

    public final void release() {
      if (references.decrementAndGet() == 0) {
        giveBack.run();
      }
    }
  }
}
