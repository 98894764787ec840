package io.zerohop.shuffle.transport.ucx.reader;

import io.zerohop.shuffle.transport.ucx.memory.GpuSlabs;
import io.zerohop.shuffle.transport.ucx.memory.Slab;
import io.zerohop.shuffle.transport.ucx.memory.Slabs;
import io.zerohop.shuffle.transport.ucx.wire.ReceiveLayout;
import io.zerohop.shuffle.transport.ucx.wire.ReceiveLayout.Part;
import io.zerohop.shuffle.transport.ucx.wire.RemoteExtents;

/**
 * Where the blocks of one request are received: on the host, but for what lies in the owner's GPU
 * memory if that is to come to this GPU's. Holds the memory until it is released, once. Not
 * changed; thread safe.
 */
final class ReceiveBuffers {
  private final RemoteExtents extents;
  private final ReceiveLayout host;
  private final ReceiveLayout gpu;
  private final Slab hostSlab;
  private final Slab gpuSlab;

  private ReceiveBuffers(
      final RemoteExtents extents,
      final ReceiveLayout host,
      final Slab hostSlab,
      final ReceiveLayout gpu,
      final Slab gpuSlab) {
    this.extents = extents;
    this.host = host;
    this.hostSlab = hostSlab;
    this.gpu = gpu;
    this.gpuSlab = gpuSlab;
  }

  /** Everything on the host. */
  static ReceiveBuffers onHost(final RemoteExtents extents, final Slabs slabs) {
    final ReceiveLayout all = new ReceiveLayout(extents, Part.ALL);
    return new ReceiveBuffers(extents, all, slabs.take(all.bytes()), null, null);
  }

  /** Each extent in the kind of memory that it lies in; null if there is no GPU memory for it. */
  static ReceiveBuffers inKind(
      final RemoteExtents extents, final Slabs slabs, final GpuSlabs gpuSlabs) {
    final ReceiveLayout far = new ReceiveLayout(extents, Part.GPU);
    final Slab farSlab = gpuSlabs.tryTake(far.bytes());
    if (farSlab == null) {
      return null;
    }
    boolean done = false;
    try {
      final ReceiveLayout near = new ReceiveLayout(extents, Part.HOST);
      final Slab nearSlab = slabs.take(near.bytes());
      done = true;
      return new ReceiveBuffers(extents, near, nearSlab, far, farSlab);
    } finally {
      if (!done) {
        farSlab.release();
      }
    }
  }

  /** What is received on the host. */
  ReceiveLayout host() {
    return host;
  }

  Slab hostSlab() {
    return hostSlab;
  }

  /** What is received in GPU memory; null if nothing is. */
  ReceiveLayout gpu() {
    return gpu;
  }

  Slab gpuSlab() {
    return gpuSlab;
  }

  /**
   * Whether GPU memory is copied here by this GPU itself: UCX does not know what it is copied to.
   */
  boolean byFabric() {
    return gpuSlab != null && gpuSlab.gpu() == null;
  }

  /** A block of it, which holds the memory from now on, too. */
  ReceivedPayload payload(final int block) {
    return new ReceivedPayload(this, extents, block);
  }

  /** Where an extent is received. */
  long address(final int extent) {
    return isOnGpu(extent)
        ? gpuSlab.address() + gpu.place(extent)
        : hostSlab.address() + host.place(extent);
  }

  /** Whether an extent is received in GPU memory. */
  boolean isOnGpu(final int extent) {
    return gpu != null && extents.isOnGpu(extent);
  }

  void retain() {
    hostSlab.retain();
    if (gpuSlab != null) {
      gpuSlab.retain();
    }
  }

  void release() {
    hostSlab.release();
    if (gpuSlab != null) {
      gpuSlab.release();
    }
  }
}
