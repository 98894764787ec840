package io.zerohop.shuffle.pool;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Device;
import io.zerohop.device.Device.FabricReach;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.StreamPool;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.host.HostDevice;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The devices of one executor's tiers and their streams. Thread safe; owns the devices. */
public final class Devices implements AutoCloseable {
  private final Device host;
  private final @Nullable Device gpu;
  private final StreamPool hostStreams;

  /** There if the GPU is. */
  private final @Nullable StreamPool gpuStreams;

  private final @Nullable StreamPool threadStreams;
  private final PeerGpus peerGpus = new PeerGpus();

  /**
   * Opens host memory beside the GPU.
   *
   * @param gpu owned from now on, also if this fails
   */
  public Devices(final @Nullable Device gpu) {
    this.gpu = gpu;
    try (Undo undo = gpu == null ? new Undo() : new Undo(gpu)) {
      host = undo.keep(new HostDevice());
    }
    hostStreams = new StreamPool(host::openStream);
    gpuStreams = gpu == null ? null : new StreamPool(gpu::openStream);
    threadStreams = gpu == null ? null : new StreamPool(gpu::openThreadStream);
  }

  public Device host() {
    return host;
  }

  public boolean hasGpu() {
    return gpu != null;
  }

  /** Returns the executors of this node whose GPU memory this one can map. */
  public PeerGpus peerGpus() {
    return peerGpus;
  }

  /** Whether segments of GPU memory can be handed to other nodes of an NVLink fabric. */
  public FabricReach fabric() {
    return gpu == null ? FabricReach.none("this executor has no GPU") : gpu.fabric();
  }

  /**
   * Returns the access of peers to blocks of this executor: read only. Where it has a GPU, peers
   * have one too, and bring blocks in host memory within its reach ({@link Device#pin}); the driver
   * locks memory that is mapped for reading alone only on request, and not on every system. There
   * peers may write.
   */
  public PeerAccess blockAccess() {
    return gpu == null ? PeerAccess.READ : PeerAccess.WRITE;
  }

  /**
   * The device of a tier.
   *
   * @throws ZerohopException (FALLBACK) if this executor has no GPU
   */
  public Device of(final Tier tier) {
    return tier == Tier.HOST ? host : present(gpu);
  }

  /**
   * Streams of a tier.
   *
   * @throws ZerohopException (FALLBACK) if this executor has no GPU
   */
  public StreamPool streams(final Tier tier) {
    return tier == Tier.HOST ? hostStreams : present(gpuStreams);
  }

  /**
   * Streams of the GPU that are in order with what other libraries do there for the same thread.
   *
   * @throws ZerohopException (FALLBACK) if this executor has no GPU
   */
  public StreamPool threadStreams() {
    return present(threadStreams);
  }

  private static <T> T present(final @Nullable T ofGpu) {
    if (ofGpu == null) {
      throw new ZerohopException(
          Category.FALLBACK, "this executor has no GPU, so it cannot read GPU memory in place");
    }
    return ofGpu;
  }

  /** Returns whether this process may read and write a segment, own or a peer's, itself. */
  public boolean hostAccessible(final SegmentMemory memory) {
    final Device device = SegmentIds.tier(memory.id()) == Tier.HOST ? host : present(gpu);
    return device.hostAccessible();
  }

  @Override
  public void close() {
    try {
      if (gpuStreams != null) {
        gpuStreams.close();
      }
      if (threadStreams != null) {
        threadStreams.close();
      }
      if (gpu != null) {
        gpu.close();
      }
    } finally {
      hostStreams.close();
      host.close();
    }
  }

  /**
   * The executors of this node that let this one map their GPU memory, and those that do not. Where
   * most do not (no peer access on the PCI bus, MIG, containers that see one GPU each), what this
   * executor's GPU writes goes to host memory, which all of them map: one copy from the GPU and one
   * to the other GPU, at the bus's rate. Access between two GPUs is mutual, so what holds for their
   * memory is taken to hold for this executor's. Thread safe.
   */
  public static final class PeerGpus {
    private static final Logger LOG = LoggerFactory.getLogger(PeerGpus.class);

    @GuardedBy("this")
    private final Set<Object> mapped = Collections.newSetFromMap(new IdentityHashMap<>());

    @GuardedBy("this")
    private final Set<Object> refused = Collections.newSetFromMap(new IdentityHashMap<>());

    private volatile boolean unreachable;

    PeerGpus() {}

    /**
     * A segment of a peer's GPU memory was mapped.
     *
     * @param peer stands for the executor, by its identity, until it is lost
     */
    public synchronized void mapped(final Object peer) {
      refused.remove(peer);
      mapped.add(peer);
      decide();
    }

    /** A segment of a peer's GPU memory could not be mapped. It holds until one can. */
    public synchronized void refused(final Object peer) {
      mapped.remove(peer);
      refused.add(peer);
      decide();
    }

    /** A peer is gone. */
    public synchronized void lost(final Object peer) {
      mapped.remove(peer);
      refused.remove(peer);
      decide();
    }

    @GuardedBy("this")
    private void decide() {
      final boolean before = unreachable;
      unreachable = refused.size() > mapped.size() || (before && mapped.isEmpty());
      if (unreachable != before) {
        LOG.info(
            "{} executors of this node can map each other's GPU memory, so the GPU's map outputs go"
                + " to {} memory from now on",
            unreachable ? "too few" : "most",
            unreachable ? "host" : "GPU");
      }
    }

    /** Whether most executors that were met cannot read this one's GPU memory in place. */
    public boolean unreachable() {
      return unreachable;
    }
  }
}
