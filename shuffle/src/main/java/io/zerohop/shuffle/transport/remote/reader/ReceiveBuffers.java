package io.zerohop.shuffle.transport.remote.reader;

import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.extent.ExtentInputStream;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.transport.Transport.Payload;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.shuffle.transport.remote.memory.Slabs.Slab;
import io.zerohop.shuffle.transport.remote.wire.RemoteExtents;
import io.zerohop.shuffle.transport.remote.wire.RemoteExtents.ReceiveLayout;
import io.zerohop.shuffle.transport.remote.wire.RemoteExtents.ReceiveLayout.Part;
import java.io.InputStream;
import org.jspecify.annotations.Nullable;

/**
 * The memory into which the blocks of one request are received: on the host, or on this GPU for
 * blocks from the owner's GPU memory. Holds the memory until it is released, once. Not changed;
 * thread safe.
 */
public final class ReceiveBuffers {
  private final RemoteExtents extents;
  private final ReceiveLayout host;
  private final Slab hostSlab;

  /** Absent, with its memory, if nothing is received in GPU memory. */
  private final @Nullable ReceiveLayout gpu;

  private final @Nullable Slab gpuSlab;
  private final boolean byFabric;

  private ReceiveBuffers(
      final RemoteExtents extents,
      final ReceiveLayout host,
      final Slab hostSlab,
      final @Nullable ReceiveLayout gpu,
      final @Nullable Slab gpuSlab,
      final boolean byFabric) {
    this.extents = extents;
    this.host = host;
    this.hostSlab = hostSlab;
    this.gpu = gpu;
    this.gpuSlab = gpuSlab;
    this.byFabric = byFabric;
  }

  /** Returns buffers for all extents on the host. */
  public static ReceiveBuffers onHost(final RemoteExtents extents, final Slabs slabs) {
    final ReceiveLayout all = new ReceiveLayout(extents, Part.ALL);
    return new ReceiveBuffers(extents, all, slabs.take(all.bytes()), null, null, false);
  }

  /**
   * Each extent in the kind of memory that it lies in.
   *
   * @param gpu GPU memory for what lies in the owner's, as {@code layout} places it; owned from now
   *     on, also if this fails
   * @param byFabric whether this GPU itself copies there, from an owner's memory that it has mapped
   */
  public static ReceiveBuffers inKind(
      final RemoteExtents extents,
      final Slabs slabs,
      final ReceiveLayout layout,
      final Slab gpu,
      final boolean byFabric) {
    boolean done = false;
    try {
      final ReceiveLayout near = new ReceiveLayout(extents, Part.HOST);
      final Slab nearSlab = slabs.take(near.bytes());
      done = true;
      return new ReceiveBuffers(extents, near, nearSlab, layout, gpu, byFabric);
    } finally {
      if (!done) {
        gpu.release();
      }
    }
  }

  /** Returns the layout of the extents that are received on the host. */
  public ReceiveLayout host() {
    return host;
  }

  public Slab hostSlab() {
    return hostSlab;
  }

  /** Returns the layout of the extents that are received in GPU memory, if there are any. */
  public @Nullable ReceiveLayout gpu() {
    return gpu;
  }

  public @Nullable Slab gpuSlab() {
    return gpuSlab;
  }

  /** Returns whether GPU memory is copied here by this GPU itself. */
  public boolean byFabric() {
    return byFabric;
  }

  /** A block of it, which holds the memory from now on, too. */
  ReceivedPayload payload(final int block) {
    return new ReceivedPayload(this, extents, block);
  }

  /** Returns the address at which an extent is received. */
  public long address(final int extent) {
    return gpu != null && gpuSlab != null && extents.isOnGpu(extent)
        ? gpuSlab.address() + gpu.place(extent)
        : hostSlab.address() + host.place(extent);
  }

  /** Returns whether an extent is received in GPU memory. */
  boolean isOnGpu(final int extent) {
    return gpu != null && extents.isOnGpu(extent);
  }

  public void retain() {
    hostSlab.retain();
    if (gpuSlab != null) {
      gpuSlab.retain();
    }
  }

  public void release() {
    hostSlab.release();
    if (gpuSlab != null) {
      gpuSlab.release();
    }
  }

  /**
   * A block that was received: its extents as its owner wrote them, in memory that others share.
   */
  private static final class ReceivedPayload implements Payload {
    private final ReceiveBuffers buffers;
    private final ExtentList extents = new ExtentList();
    private boolean byFabric;
    private long bytes;
    private volatile boolean released;

    /** Holds the memory from now on. */
    ReceivedPayload(final ReceiveBuffers buffers, final RemoteExtents remote, final int block) {
      this.buffers = buffers;
      buffers.retain();
      for (int i = remote.begin(block); i < remote.end(block); i++) {
        extents.add(
            buffers.address(i),
            remote.length(i),
            buffers.isOnGpu(i),
            null,
            remote.isChecked(i),
            remote.checksum(i));
        bytes += remote.length(i);
        byFabric |= buffers.isOnGpu(i) && buffers.byFabric();
      }
    }

    @Override
    public long bytes() {
      return bytes;
    }

    @Override
    public Path path(final Path asked) {
      return byFabric ? Path.PEER : asked;
    }

    @Override
    public ExtentList extents() {
      return extents;
    }

    @Override
    public InputStream open() {
      return new ExtentInputStream(extents, 0, extents.size(), () -> !released);
    }

    @Override
    public void release() {
      released = true;
      buffers.release();
    }
  }
}
