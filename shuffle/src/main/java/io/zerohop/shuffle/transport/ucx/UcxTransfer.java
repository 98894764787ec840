package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.Transport.NotGettableException;
import io.zerohop.shuffle.transport.Transport.Sink;
import io.zerohop.shuffle.transport.remote.RemoteTransfer;
import io.zerohop.shuffle.transport.remote.Slabs;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import io.zerohop.shuffle.transport.remote.Wire;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import io.zerohop.shuffle.transport.remote.Wire.RemoteExtents;
import io.zerohop.shuffle.transport.remote.Wire.RemoteExtents.ReceiveLayout;
import io.zerohop.shuffle.transport.remote.Wire.RemoteExtents.ReceiveLayout.Part;
import io.zerohop.shuffle.transport.ucx.FabricReader.FabricCopy;
import io.zerohop.shuffle.transport.ucx.FabricReader.FabricImports;
import io.zerohop.shuffle.transport.ucx.UcxPeer.Gets;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions;
import io.zerohop.shuffle.transport.ucx.memory.GetQuestions.FabricTarget;
import io.zerohop.shuffle.transport.ucx.memory.TransferMemory.GpuSlabs;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * A window read by gets. It is handed out if the owner confirms at the end that its lease was held:
 * blocks from GPU memory to this GPU, others to the host. If one extent of it cannot be got, none
 * is: the owner has to send it. See docs/rdma.md.
 */
final class UcxTransfer extends RemoteTransfer {
  private final UcxPeer peer;
  private final @Nullable GpuSlabs gpuSlabs;
  private final @Nullable FabricImports fabric;

  /** The segments in the owner's GPU memory, once they are known; only for a fabric. */
  private Set<Long> gpuSegments = Set.of();

  /** Gets that have not ended, wanted or not. */
  private final AtomicInteger getsLeft = new AtomicInteger();

  /**
   * @param gpuSlabs what UCX receives GPU memory in; absent if none is got
   * @param fabric how GPU memory is copied as it is, which is tried first, if it can be
   */
  UcxTransfer(
      final UcxPeer peer,
      final List<Block> blocks,
      final Sink sink,
      final Slabs slabs,
      final @Nullable GpuSlabs gpuSlabs,
      final @Nullable FabricImports fabric,
      final Executor executor) {
    super(peer, blocks, sink, slabs, executor);
    this.peer = peer;
    this.gpuSlabs = gpuSlabs;
    this.fabric = fabric;
  }

  @Override
  protected void receive() {
    if (fabric != null) {
      fetchHandles(fabric);
    } else {
      choose();
    }
  }

  /** Maps the owner's segments that have not been, unless that is refused. */
  private void fetchHandles(final FabricImports imports) {
    gpuSegments = gpuSegments();
    final Set<Long> missing = imports.missing(gpuSegments);
    if (missing.isEmpty() || imports.refused()) {
      choose();
      return;
    }
    ask(GetQuestions.handles(missing))
        .thenAcceptAsync(
            answer -> {
              missing.forEach(segment -> imports.take(segment, FabricTarget.read(answer)));
              choose();
            },
            executor)
        .exceptionally(this::failed);
  }

  private void choose() {
    final boolean far =
        IntStream.range(0, extents().size()).anyMatch(extent -> extents().isOnGpu(extent));
    if (far) {
      chooseGpu();
    } else if (peer.takesHost()) {
      fetchKeys(ReceiveBuffers.onHost(extents(), slabs));
    } else {
      fail(new NotGettableException("gets of host memory are emulated"));
    }
  }

  /** The headers beside are got, too, also where that is emulated: they are small. */
  private void chooseGpu() {
    final FabricImports imports = fabric != null && !fabric.refused() ? fabric : null;
    final GpuSlabs there = imports != null ? imports.slabs() : gpuSlabs;
    if (there == null) {
      fail(new NotGettableException("the blocks are in GPU memory"));
      return;
    }
    final ReceiveLayout layout = new ReceiveLayout(extents(), Part.GPU);
    final Slab slab = there.tryTake(layout.bytes());
    if (slab == null) {
      fail(new NotGettableException("this GPU's memory has no room"));
    } else {
      fetchKeys(ReceiveBuffers.inKind(extents(), slabs, layout, slab, imports != null));
    }
  }

  private void fetchKeys(final ReceiveBuffers there) {
    final ReceiveBuffers to = receiveInto(there);
    if (to == null) {
      return; // It has failed meanwhile.
    }
    final Set<Long> unknown = segmentsToGet(to.byFabric());
    unknown.removeIf(segment -> peer.key(segment) != null);
    to.release();
    if (unknown.isEmpty()) {
      move();
    } else {
      ask(GetQuestions.keys(unknown))
          .thenAcceptAsync(answer -> keep(unknown, answer), executor)
          .thenRun(this::move)
          .exceptionally(this::failed);
    }
  }

  private void keep(final Set<Long> segments, final ByteBuffer answer) {
    for (final long segment : segments) {
      final long address = answer.getLong();
      peer.key(new UcxPeer.SegmentKey(segment, address, Wire.bytes(answer)));
    }
  }

  /** By gets, but for GPU memory that this GPU can copy. */
  private void move() {
    final ReceiveBuffers to = current();
    if (to == null) {
      return;
    }
    try {
      if (!segmentsToGet(to.byFabric()).stream().allMatch(this::hasKey)) {
        fail(new NotGettableException("UCX could not register the memory"));
        return;
      }
      final List<Gets.Get> gets = new ArrayList<>(gets(to.host(), to.hostSlab()));
      final ReceiveLayout onGpu = to.gpu();
      final Slab gpuSlab = to.gpuSlab();
      if (onGpu != null && gpuSlab != null && !to.byFabric()) {
        gets.addAll(gets(onGpu, gpuSlab));
      }
      final FabricImports imports = to.byFabric() ? fabric : null;
      final FabricImports.Hold mapped = imports == null ? null : imports.hold(gpuSegments);
      if (to.byFabric() && mapped == null) {
        fail(new NotGettableException("its segment is no longer mapped"));
        return;
      }
      if (!beginReading()) {
        if (mapped != null) {
          mapped.close();
        }
        return;
      }
      getsLeft.set(gets.size() + (mapped == null ? 0 : 1));
      gets.forEach(peer.gets()::submit);
      if (imports != null && mapped != null) {
        copy(imports, mapped, to);
      }
    } finally {
      to.release();
    }
  }

  /** GPU memory by copies of this GPU, which count as one get. */
  private void copy(
      final FabricImports imports, final FabricImports.Hold from, final ReceiveBuffers to) {
    to.retain();
    imports.copy(
        new FabricCopy(
            from,
            copies(to),
            () -> !hasEnded() && peer.alive(),
            this::progress,
            failure -> copied(imports, to, failure)));
  }

  private void copied(
      final FabricImports imports, final ReceiveBuffers to, final @Nullable Throwable failure) {
    if (!FabricCopy.isStuck(failure)) {
      to.release();
    }
    if (failure != null) {
      if (!hasEnded() && peer.alive()) {
        imports.refuse(Message.of("a copy failed").because(failure));
      }
      fail(failure);
    }
    got(null);
  }

  private void got(final @Nullable String failure) {
    if (failure != null) {
      fail(
          new ZerohopException(
              Category.RETRY, ShuffleCode.GET_FAILED.says("a UCX read failed").because(failure)));
    } else {
      progress();
    }
    if (getsLeft.decrementAndGet() > 0) {
      return;
    }
    if (!endReading()) {
      return;
    }
    // Gets do not involve the owner: only it can tell whether the memory was still these blocks.
    ask(Questions.close(lease()))
        .thenAcceptAsync(answer -> confirmed(answer.get() != 0), executor)
        .exceptionally(this::failed);
  }

  private void confirmed(final boolean stillHeld) {
    if (!stillHeld) {
      throw new ZerohopException(
          Category.RETRY, "the owner released the blocks while they were being read");
    }
    if (gpuSlabs != null) {
      gpuSlabs.received();
    }
    succeed();
  }

  /** The segments in the owner's GPU memory. */
  private Set<Long> gpuSegments() {
    final RemoteExtents extents = extents();
    final Set<Long> segments = new LinkedHashSet<>();
    IntStream.range(0, extents.size())
        .filter(extents::isOnGpu)
        .forEach(extent -> segments.add(extents.segment(extent)));
    return segments;
  }

  /**
   * Returns the segments to read by gets.
   *
   * @param gpuByFabric whether no get reads those in GPU memory
   */
  private Set<Long> segmentsToGet(final boolean gpuByFabric) {
    final RemoteExtents extents = extents();
    final Set<Long> segments = new LinkedHashSet<>();
    IntStream.range(0, extents.size())
        .filter(extent -> !(gpuByFabric && extents.isOnGpu(extent)))
        .forEach(extent -> segments.add(extents.segment(extent)));
    return segments;
  }

  /** A segment is gone if the owner has not held the lease until now. */
  private boolean hasKey(final long segment) {
    final UcxPeer.SegmentKey known = peer.key(segment);
    return known != null && known.key().length > 0;
  }

  /** Gets of what a layout receives in some memory. */
  private List<Gets.Get> gets(final ReceiveLayout layout, final Slab to) {
    final RemoteExtents extents = extents();
    final List<Gets.Get> gets = new ArrayList<>();
    for (int run = 0; run < layout.runs(); run++) {
      final int first = layout.first(run);
      final UcxPeer.SegmentKey from = peer.key(extents.segment(first));
      if (from == null) {
        throw new ZerohopException(
            Category.RETRY,
            "another segment has taken the place of segment " + extents.segment(first));
      }
      final long bytes = layout.runBytes(run);
      for (long got = 0; got < bytes; got += ReceiveLayout.RUN_BYTES) {
        gets.add(
            new Gets.Get(
                from.key(),
                from.address() + extents.offset(first) + got,
                to,
                layout.place(first) + got,
                Math.min(ReceiveLayout.RUN_BYTES, bytes - got),
                () -> !hasEnded(),
                this::got));
      }
    }
    return gets;
  }

  /** Copies of this GPU of all that is in the owner's GPU memory. */
  private List<FabricCopy.Piece> copies(final ReceiveBuffers to) {
    final RemoteExtents extents = extents();
    final ReceiveLayout layout = Objects.requireNonNull(to.gpu(), "nothing comes to the GPU");
    final List<FabricCopy.Piece> copies = new ArrayList<>();
    for (int run = 0; run < layout.runs(); run++) {
      final int first = layout.first(run);
      copies.add(
          new FabricCopy.Piece(
              extents.segment(first),
              extents.offset(first),
              to.address(first),
              layout.runBytes(run)));
    }
    return copies;
  }
}
