package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.transport.ControlChannel.ControlLink;
import io.zerohop.shuffle.transport.remote.Carrier.Completion;
import io.zerohop.shuffle.transport.remote.RemotePeer;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import io.zerohop.shuffle.transport.ucx.FabricReader.FabricImports;
import io.zerohop.shuffle.transport.ucx.engine.UcxEngine.UcxEndpoint;
import io.zerohop.shuffle.transport.ucx.memory.TransferMemory.GpuSlabs;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A connected owner on another node that is read by UCX: besides the link the endpoint to get from
 * it, and the keys of its segments. Thread safe; owns link and endpoint.
 */
public final class UcxPeer extends RemotePeer {

  /**
   * By the slot of the owner's segment table: what comes into a slot takes the place of a segment
   * that is gone, so there are never more keys than the owner can have segments.
   */
  private final Map<Integer, SegmentKey> keys = new ConcurrentHashMap<>();

  /** There once its worker was reached. */
  private volatile @Nullable UcxEndpoint endpoint;

  private volatile @Nullable Gets gets;
  private boolean takesHost;
  private boolean takesGpu;

  /** What is mapped of its GPU memory; absent if it is not in this node's clique. */
  private @Nullable FabricImports fabric;

  /**
   * The keys for a get from a segment.
   *
   * @param key empty if nothing of it can be got
   */
  record SegmentKey(long segmentId, long address, byte[] key) {}

  /**
   * @param clock by which it is idle, or silent
   */
  public UcxPeer(final String name, final ControlLink link, final Clock clock) {
    super(name, "UCX", ShuffleCode.UCX_BROKEN_OFF, link, clock);
  }

  /** Its worker was reached. */
  public void endpoint(final UcxEndpoint to) {
    endpoint = to;
    gets = new Gets(to);
    if (isBroken()) {
      to.close();
    }
  }

  /**
   * First contact has shown what is got from it; said once, before anybody reads.
   *
   * @param host whether host memory is
   * @param gpu whether GPU memory is, into that of this GPU
   */
  public void gets(final boolean host, final boolean gpu) {
    takesHost = host;
    takesGpu = gpu;
  }

  /** Returns whether blocks in its host memory are got. */
  public boolean takesHost() {
    return takesHost;
  }

  /** Returns whether blocks in its GPU's memory are got into that of this GPU as they are. */
  public boolean takesGpu() {
    return takesGpu;
  }

  /** Its GPU memory as an NVLink fabric shows it, if it does. */
  synchronized @Nullable FabricImports fabric() {
    return fabric;
  }

  /** It is in this node's clique; the first call counts. The mappings are closed with the peer. */
  synchronized void fabric(final Supplier<FabricImports> clique) {
    if (fabric == null && !isBroken()) {
      fabric = clique.get();
    }
  }

  /** The gets from it, once its worker was reached. */
  public Gets gets() {
    return Objects.requireNonNull(gets, "its worker was not reached");
  }

  /** What was kept of a segment; absent if nothing was, or it is gone. */
  @Nullable SegmentKey key(final long segmentId) {
    final SegmentKey known = keys.get(SegmentIds.slot(segmentId));
    return known != null && known.segmentId() == segmentId ? known : null;
  }

  void key(final SegmentKey key) {
    keys.merge(
        SegmentIds.slot(key.segmentId()),
        key,
        (old, young) -> old.segmentId() > young.segmentId() ? old : young);
  }

  /** Segments with cached keys. */
  int keys() {
    return keys.size();
  }

  @Override
  protected void disconnect() {
    synchronized (this) {
      if (fabric != null) {
        fabric.close();
      }
    }
    final UcxEndpoint reached = endpoint;
    if (reached != null) {
      reached.close();
    }
  }

  /**
   * Gets from one peer, with a limit on concurrent ones. Any thread may be the one that starts the
   * next.
   */
  public static final class Gets {
    private static final int AT_ONCE = 16;

    private final UcxEndpoint endpoint;
    private final Deque<Get> waiting = new ArrayDeque<>();
    private int underWay;

    /**
     * One of them.
     *
     * @param slab held until the get has ended
     * @param wanted asked before it is started; if not it ends with a failure
     */
    public record Get(
        byte[] key,
        long remoteAddress,
        Slab slab,
        long offset,
        long bytes,
        BooleanSupplier wanted,
        Completion done) {}

    Gets(final UcxEndpoint endpoint) {
      this.endpoint = endpoint;
    }

    public void submit(final Get get) {
      get.slab().retain();
      synchronized (this) {
        waiting.add(get);
      }
      startMore();
    }

    private void startMore() {
      for (Get get = next(); get != null; get = next()) {
        final Get started = get;
        if (!started.wanted().getAsBoolean()) {
          finish(started, "the transfer was cancelled");
          continue;
        }
        endpoint.get(
            get.key(),
            get.remoteAddress(),
            get.slab().address() + get.offset(),
            get.bytes(),
            GpuSlabs.registration(get.slab()),
            failure -> ended(started, failure));
      }
    }

    private synchronized @Nullable Get next() {
      if (underWay == AT_ONCE || waiting.isEmpty()) {
        return null;
      }
      underWay++;
      return waiting.poll();
    }

    private void ended(final Get get, final @Nullable String failure) {
      finish(get, failure);
      startMore();
    }

    private void finish(final Get get, final @Nullable String failure) {
      synchronized (this) {
        underWay--;
      }
      get.slab().release();
      get.done().done(failure);
    }
  }
}
