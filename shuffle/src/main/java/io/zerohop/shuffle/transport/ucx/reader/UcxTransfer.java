package io.zerohop.shuffle.transport.ucx.reader;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.Transport.Sink;
import io.zerohop.shuffle.transport.remote.memory.Slab;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.shuffle.transport.remote.reader.MessageReceiver;
import io.zerohop.shuffle.transport.remote.reader.ReceiveBuffers;
import io.zerohop.shuffle.transport.remote.reader.RemoteTransfer;
import io.zerohop.shuffle.transport.remote.wire.ReceiveLayout;
import io.zerohop.shuffle.transport.remote.wire.ReceiveLayout.Part;
import io.zerohop.shuffle.transport.remote.wire.Wire;
import io.zerohop.shuffle.transport.ucx.fabric.FabricCopy;
import io.zerohop.shuffle.transport.ucx.fabric.FabricImports;
import io.zerohop.shuffle.transport.ucx.memory.GpuSlabs;
import io.zerohop.shuffle.transport.ucx.wire.FabricTarget;
import io.zerohop.shuffle.transport.ucx.wire.GetQuestions;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/**
 * A window that is got, as far as that can be, and handed out if the owner says at the end that it
 * held it all the time. What lies in the owner's GPU memory is got into this GPU's, where that can
 * be; the rest comes to the host, by gets or by messages.
 */
public final class UcxTransfer extends RemoteTransfer {
  private final UcxPeer peer;
  private final GpuSlabs gpuSlabs;
  private final FabricImports fabric;

  /** Gets that have not ended, wanted or not. */
  private final AtomicInteger getsLeft = new AtomicInteger();

  private TransferPieces pieces;

  /**
   * @param gpuSlabs what UCX receives GPU memory in as it is; null if it is to come to the host
   * @param fabric how GPU memory is copied as it is, which is tried first; null if it cannot be
   */
  public UcxTransfer(
      final UcxPeer peer,
      final List<Block> blocks,
      final Sink sink,
      final Slabs slabs,
      final GpuSlabs gpuSlabs,
      final FabricImports fabric,
      final MessageReceiver arrivals,
      final Executor executor) {
    super(peer, blocks, sink, slabs, arrivals, executor);
    this.peer = peer;
    this.gpuSlabs = gpuSlabs;
    this.fabric = fabric;
  }

  @Override
  protected boolean takesGpuMemory() {
    return gpuSlabs != null || fabric != null;
  }

  @Override
  protected boolean isStillReading() {
    return getsLeft.get() > 0;
  }

  @Override
  protected void receive(final boolean onlyByMessage) {
    pieces = new TransferPieces(extents(), peer);
    if (fabric != null && !onlyByMessage) {
      fetchHandles();
    } else {
      choose(onlyByMessage);
    }
  }

  /** Maps the owner's segments that have not been, unless that is refused. */
  private void fetchHandles() {
    final Set<Long> missing = fabric.missing(pieces.gpuSegments());
    if (missing.isEmpty() || fabric.refused()) {
      choose(false);
      return;
    }
    ask(GetQuestions.handles(missing))
        .thenAcceptAsync(
            answer -> {
              missing.forEach(segment -> fabric.take(segment, FabricTarget.read(answer)));
              choose(false);
            },
            executor())
        .exceptionally(this::failed);
  }

  private void choose(final boolean onlyByMessage) {
    final boolean far =
        IntStream.range(0, extents().size()).anyMatch(extent -> extents().isOnGpu(extent));
    final boolean byFabric = fabric != null && !fabric.refused();
    final GpuSlabs there = byFabric ? fabric.slabs() : gpuSlabs;
    final ReceiveBuffers inKind =
        far && !onlyByMessage && there != null ? inKind(there, byFabric) : null;
    if (inKind != null) {
      fetchKeys(inKind);
    } else if (far || onlyByMessage || peer.byMessage()) {
      moveByMessages();
    } else {
      fetchKeys(ReceiveBuffers.onHost(extents(), slabs()));
    }
  }

  /** Null if there is no GPU memory for it. */
  private ReceiveBuffers inKind(final GpuSlabs there, final boolean byFabric) {
    final ReceiveLayout far = new ReceiveLayout(extents(), Part.GPU);
    final Slab slab = there.tryTake(far.bytes());
    return slab == null ? null : ReceiveBuffers.inKind(extents(), slabs(), far, slab, byFabric);
  }

  private void fetchKeys(final ReceiveBuffers to) {
    final Set<Long> unknown = pieces.unknownKeys(to.byFabric());
    if (!receiveInto(to)) {
      closeLease(); // It has failed meanwhile.
    } else if (unknown.isEmpty()) {
      move();
    } else {
      ask(GetQuestions.keys(unknown))
          .thenAcceptAsync(answer -> keep(unknown, answer), executor())
          .thenRun(this::move)
          .exceptionally(this::failed);
    }
  }

  private void keep(final Set<Long> segments, final ByteBuffer answer) {
    for (final long segment : segments) {
      final long address = answer.getLong();
      peer.key(segment, new UcxPeer.SegmentKey(address, Wire.bytes(answer)));
    }
  }

  /**
   * By gets, but for what comes to the host from a peer whose gets are slow, and for GPU memory
   * that this GPU can copy.
   */
  private void move() {
    final ReceiveBuffers to = current();
    if (to == null) {
      closeLease();
      return;
    }
    try {
      final boolean hostByMessage = to.gpu() != null && peer.byMessage();
      final FabricImports.Hold mapped = to.byFabric() ? fabric.hold(pieces.gpuSegments()) : null;
      if (!pieces.haveKeys(hostByMessage, to.byFabric()) || to.byFabric() && mapped == null) {
        if (mapped != null) {
          mapped.close();
        }
        moveByMessages(); // A segment that its owner could not register, or is not mapped any more.
        return;
      }
      final List<Gets.Get> gets = new ArrayList<>();
      if (!hostByMessage) {
        gets.addAll(pieces.gets(to.host(), to.hostSlab(), () -> !hasEnded(), this::got));
      }
      if (to.gpu() != null && mapped == null) {
        gets.addAll(pieces.gets(to.gpu(), to.gpuSlab(), () -> !hasEnded(), this::got));
      }
      final boolean messages = hostByMessage && to.host().runs() > 0;
      ways(messages ? 2 : 1);
      getsLeft.set(gets.size() + (mapped == null ? 0 : 1));
      if (messages) {
        askForMessages(to, true);
      }
      gets.forEach(peer.gets()::submit);
      if (mapped != null) {
        copy(mapped, to);
      }
    } finally {
      to.release();
    }
  }

  /** GPU memory by copies of this GPU, which count as one get. */
  private void copy(final FabricImports.Hold from, final ReceiveBuffers to) {
    to.retain();
    fabric.copy(
        new FabricCopy(
            from,
            pieces.copies(to),
            () -> !hasEnded() && peer.alive(),
            this::progress,
            failure -> copied(to, failure)));
  }

  private void copied(final ReceiveBuffers to, final Throwable failure) {
    if (!FabricCopy.isStuck(failure)) {
      to.release();
    }
    if (failure != null) {
      if (!hasEnded() && peer.alive()) {
        fabric.refuse("a copy failed: " + failure.getMessage());
      }
      fail(failure);
    }
    got(null);
  }

  private void got(final String failure) {
    if (failure != null) {
      fail(
          new ZerohopException(
              Category.RETRY, ShuffleCode.GET_FAILED.marked("a get failed: " + failure)));
    } else {
      progress();
    }
    if (getsLeft.decrementAndGet() > 0) {
      return;
    }
    if (hasEnded()) {
      closeLease(); // Not before: what was still asked for needs it.
      return;
    }
    wayEnded();
  }
}
