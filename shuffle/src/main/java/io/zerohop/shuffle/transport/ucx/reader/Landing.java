package io.zerohop.shuffle.transport.ucx.reader;

import io.zerohop.shuffle.transport.ucx.memory.GpuSlabs;
import io.zerohop.shuffle.transport.ucx.memory.Slab;
import io.zerohop.shuffle.transport.ucx.memory.Slabs;
import io.zerohop.shuffle.transport.ucx.wire.LandingLayout;
import io.zerohop.shuffle.transport.ucx.wire.LandingLayout.Part;
import io.zerohop.shuffle.transport.ucx.wire.RemoteExtents;

/**
 * Where the blocks of one request land: on the host, but for what lies in the owner's GPU memory if
 * that is to land in this GPU's. Holds the memory until it is released, once. Not changed; thread
 * safe.
 */
final class Landing {
  private final RemoteExtents extents;
  private final LandingLayout host;
  private final LandingLayout gpu;
  private final Slab hostSlab;
  private final Slab gpuSlab;

  private Landing(
      final RemoteExtents extents,
      final LandingLayout host,
      final Slab hostSlab,
      final LandingLayout gpu,
      final Slab gpuSlab) {
    this.extents = extents;
    this.host = host;
    this.hostSlab = hostSlab;
    this.gpu = gpu;
    this.gpuSlab = gpuSlab;
  }

  /** Everything on the host. */
  static Landing onHost(final RemoteExtents extents, final Slabs slabs) {
    final LandingLayout all = new LandingLayout(extents, Part.ALL);
    return new Landing(extents, all, slabs.take(all.bytes()), null, null);
  }

  /** Each extent in the kind of memory that it lies in; null if there is no GPU memory for it. */
  static Landing inKind(final RemoteExtents extents, final Slabs slabs, final GpuSlabs gpuSlabs) {
    final LandingLayout far = new LandingLayout(extents, Part.GPU);
    final Slab farSlab = gpuSlabs.tryTake(far.bytes());
    if (farSlab == null) {
      return null;
    }
    boolean done = false;
    try {
      final LandingLayout near = new LandingLayout(extents, Part.HOST);
      final Slab nearSlab = slabs.take(near.bytes());
      done = true;
      return new Landing(extents, near, nearSlab, far, farSlab);
    } finally {
      if (!done) {
        farSlab.release();
      }
    }
  }

  /** What lands on the host. */
  LandingLayout host() {
    return host;
  }

  Slab hostSlab() {
    return hostSlab;
  }

  /** What lands in GPU memory; null if nothing does. */
  LandingLayout gpu() {
    return gpu;
  }

  Slab gpuSlab() {
    return gpuSlab;
  }

  /** A block of it, which holds the memory from now on, too. */
  LandedPayload payload(final int block) {
    return new LandedPayload(this, extents, block);
  }

  /** Where an extent has landed. */
  long address(final int extent) {
    return isOnGpu(extent)
        ? gpuSlab.address() + gpu.place(extent)
        : hostSlab.address() + host.place(extent);
  }

  /** Whether an extent has landed in GPU memory. */
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
