package io.zerohop.shuffle.transport.ucx.reader;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.Transport.Sink;
import io.zerohop.shuffle.transport.ucx.fabric.FabricCopy;
import io.zerohop.shuffle.transport.ucx.fabric.FabricImports;
import io.zerohop.shuffle.transport.ucx.memory.GpuSlabs;
import io.zerohop.shuffle.transport.ucx.memory.Slabs;
import io.zerohop.shuffle.transport.ucx.wire.FabricTarget;
import io.zerohop.shuffle.transport.ucx.wire.Questions;
import io.zerohop.shuffle.transport.ucx.wire.RemoteExtents;
import io.zerohop.shuffle.transport.ucx.wire.Wire;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;

/**
 * The blocks of one window on their way from one owner: looked up and held by the owner, moved, and
 * handed out if the owner says at the end that it held them all the time. What lies in the owner's
 * GPU memory is got into this GPU's, where that can be; the rest comes to the host, by gets or by
 * messages. Steps run on the threads of whatever they waited for, or on the executor; none waits.
 */
public final class RemoteTransfer {
  private final RemotePeer peer;
  private final List<Block> blocks;
  private final Sink sink;
  private final Slabs slabs;
  private final GpuSlabs gpuSlabs;
  private final FabricImports fabric;
  private final MessageReceiver arrivals;
  private final Executor executor;
  private final AtomicBoolean ended = new AtomicBoolean();

  /** Gets that have not ended, wanted or not. */
  private final AtomicInteger getsLeft = new AtomicInteger();

  private volatile long lastProgress;

  /** Blocks that nothing was said of yet, by their place in the request. */
  @GuardedBy("this")
  private final Map<Integer, Block> waiting = new LinkedHashMap<>();

  /** Gets and messages, as far as there are such and they have not ended. */
  private final AtomicInteger waysLeft = new AtomicInteger();

  private volatile long lease;
  private volatile boolean leaseEndsItself;
  private RemoteExtents extents;
  private TransferPieces pieces;

  @GuardedBy("this")
  private ReceiveBuffers buffers;

  /** What takes the messages, if it comes to that. */
  @GuardedBy("this")
  private MessageReceiver.Waiting messages;

  /**
   * @param gpuSlabs what UCX receives GPU memory in as it is; null if it is to come to the host
   * @param fabric how GPU memory is copied as it is, which is tried first; null if it cannot be
   */
  public RemoteTransfer(
      final RemotePeer peer,
      final List<Block> blocks,
      final Sink sink,
      final Slabs slabs,
      final GpuSlabs gpuSlabs,
      final FabricImports fabric,
      final MessageReceiver arrivals,
      final Executor executor) {
    this.peer = peer;
    this.blocks = blocks;
    this.sink = sink;
    this.slabs = slabs;
    this.gpuSlabs = gpuSlabs;
    this.fabric = fabric;
    this.arrivals = arrivals;
    this.executor = executor;
    this.lastProgress = peer.clock().nanos();
    for (int i = 0; i < blocks.size(); i++) {
      waiting.put(i, blocks.get(i));
    }
  }

  public void start() {
    peer.begin(this);
    ask(Questions.open(blocks, gpuSlabs != null || fabric != null))
        .thenAcceptAsync(this::opened, executor)
        .exceptionally(this::failed);
  }

  private void opened(final ByteBuffer answer) {
    lease = answer.getLong();
    final boolean onlyByMessage = answer.get() != 0;
    extents = RemoteExtents.read(answer);
    pieces = new TransferPieces(extents, peer);
    if (extents.blocks() != blocks.size()) {
      throw new IllegalArgumentException("the owner answers for other blocks");
    }
    final List<Block> missing = dropMissing();
    sink.failed(missing, notHeld());
    if (missing.size() == blocks.size()) {
      closeLease();
      end(null);
      return;
    }
    if (fabric != null && !onlyByMessage) {
      fetchHandles();
    } else {
      receive(onlyByMessage);
    }
  }

  /** Maps the owner's segments that have not been, unless that is refused. */
  private void fetchHandles() {
    final Set<Long> missing = fabric.missing(pieces.gpuSegments());
    if (missing.isEmpty() || fabric.refused()) {
      receive(false);
      return;
    }
    ask(Questions.handles(missing))
        .thenAcceptAsync(
            answer -> {
              missing.forEach(segment -> fabric.take(segment, FabricTarget.read(answer)));
              receive(false);
            },
            executor)
        .exceptionally(this::failed);
  }

  private void receive(final boolean onlyByMessage) {
    final boolean far = IntStream.range(0, extents.size()).anyMatch(extents::isOnGpu);
    final GpuSlabs there = fabric == null || fabric.refused() ? gpuSlabs : fabric.slabs();
    final ReceiveBuffers inKind =
        far && !onlyByMessage && there != null
            ? ReceiveBuffers.inKind(extents, slabs, there)
            : null;
    if (inKind != null) {
      fetchKeys(inKind);
    } else if (far || onlyByMessage || peer.byMessage()) {
      moveByMessages();
    } else {
      fetchKeys(ReceiveBuffers.onHost(extents, slabs));
    }
  }

  private synchronized List<Block> dropMissing() {
    final List<Block> missing = new ArrayList<>();
    for (int i = 0; i < blocks.size(); i++) {
      if (extents.end(i) == extents.begin(i) && waiting.remove(i) != null) {
        missing.add(blocks.get(i));
      }
    }
    return missing;
  }

  private static ZerohopException notHeld() {
    return new ZerohopException(Category.FALLBACK, "its owner does not hold it in memory");
  }

  private void fetchKeys(final ReceiveBuffers to) {
    final Set<Long> unknown = pieces.unknownKeys(to.byFabric());
    if (!receiveInto(to)) {
      closeLease(); // It has failed meanwhile.
    } else if (unknown.isEmpty()) {
      move();
    } else {
      ask(Questions.keys(unknown))
          .thenAcceptAsync(answer -> keep(unknown, answer), executor)
          .thenRun(this::move)
          .exceptionally(this::failed);
    }
  }

  private void keep(final Set<Long> segments, final ByteBuffer answer) {
    for (final long segment : segments) {
      final long address = answer.getLong();
      peer.key(segment, new RemotePeer.SegmentKey(address, Wire.bytes(answer)));
    }
  }

  /** From now on it is received here, and not where it was before; false if it has ended. */
  private boolean receiveInto(final ReceiveBuffers there) {
    final ReceiveBuffers unused;
    final boolean accepted;
    synchronized (this) {
      accepted = !ended.get();
      unused = accepted ? buffers : there;
      buffers = accepted ? there : buffers;
    }
    if (unused != null) {
      unused.release();
    }
    return accepted;
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
        gets.addAll(pieces.gets(to.host(), to.hostSlab(), () -> !ended.get(), this::got));
      }
      if (to.gpu() != null && mapped == null) {
        gets.addAll(pieces.gets(to.gpu(), to.gpuSlab(), () -> !ended.get(), this::got));
      }
      final boolean messages = hostByMessage && to.host().runs() > 0;
      waysLeft.set(messages ? 2 : 1);
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
            () -> !ended.get() && peer.alive(),
            this::progress,
            failure -> copied(to, failure)));
  }

  private void copied(final ReceiveBuffers to, final Throwable failure) {
    if (!FabricCopy.isStuck(failure)) {
      to.release();
    }
    if (failure != null) {
      if (!ended.get() && peer.alive()) {
        fabric.refuse("a copy failed: " + failure.getMessage());
      }
      fail(failure);
    }
    got(null);
  }

  /** Everything to the host; the owner copies what lies in GPU memory. */
  private void moveByMessages() {
    final ReceiveBuffers to = ReceiveBuffers.onHost(extents, slabs);
    if (receiveInto(to)) {
      leaseEndsItself = true;
      waysLeft.set(1);
      askForMessages(to, false);
    } else {
      closeLease();
    }
  }

  /**
   * @param hostOnly what lies in the owner's host memory, and not the rest
   */
  private void askForMessages(final ReceiveBuffers to, final boolean hostOnly) {
    final MessageReceiver.Waiting all;
    synchronized (this) {
      if (buffers == null) {
        all = null; // It has ended.
      } else {
        all = arrivals.expect(to.hostSlab(), to.host().bytes(), this::progress);
        messages = all;
      }
    }
    if (all == null) {
      closeLease();
      return;
    }
    ask(Questions.send(lease, all.id(), hostOnly))
        .thenAccept(answer -> all.total(answer.getLong()))
        .thenCompose(sent -> all.complete())
        .thenRunAsync(this::wayEnded, executor)
        .exceptionally(this::failed);
  }

  /** The memory, held for the caller, too; null if there is none, or this has ended. */
  private synchronized ReceiveBuffers current() {
    if (buffers != null) {
      buffers.retain();
    }
    return buffers;
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
    if (ended.get()) {
      closeLease(); // Not before: what was still asked for needs it.
      return;
    }
    wayEnded();
  }

  private void wayEnded() {
    if (waysLeft.decrementAndGet() > 0) {
      return;
    }
    if (leaseEndsItself) {
      end(null);
      return;
    }
    // Gets do not involve the owner: only it can tell whether the memory was still these blocks.
    ask(Questions.close(lease))
        .thenAcceptAsync(answer -> confirmed(answer.get() != 0), executor)
        .exceptionally(this::failed);
  }

  private CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
    return peer.ask(question)
        .thenApply(
            answer -> {
              progress();
              return answer;
            });
  }

  private void progress() {
    lastProgress = peer.clock().nanos();
    peer.progress();
  }

  /** Gives up if nothing has come for so long. */
  void checkStalled(final long nanos) {
    if (peer.clock().since(lastProgress) > nanos) {
      fail(
          new ZerohopException(
              Category.RETRY,
              ShuffleCode.TRANSFER_STALLED.marked(
                  "nothing came of it for " + nanos / 1_000_000_000 + " s")));
    }
  }

  private void confirmed(final boolean stillHeld) {
    if (!stillHeld) {
      throw new ZerohopException(
          Category.RETRY, "its owner had let go of it while it was being read");
    }
    end(null);
  }

  private void closeLease() {
    if (lease != 0 && peer.alive()) {
      peer.ask(Questions.close(lease));
    }
  }

  /** What went wrong on the way does not say that the blocks cannot be had this way. */
  private Void failed(final Throwable wrapped) {
    final Throwable cause = wrapped instanceof CompletionException ? wrapped.getCause() : wrapped;
    fail(
        cause instanceof ExchangeException
            ? new ZerohopException(Category.RETRY, cause.getMessage(), cause)
            : cause);
    return null;
  }

  /** Gives up, unless it has ended. Any thread. */
  void fail(final Throwable cause) {
    end(cause);
  }

  private void end(final Throwable cause) {
    if (!ended.compareAndSet(false, true)) {
      return;
    }
    peer.end(this);
    final Map<Integer, Block> left;
    final ReceiveBuffers received;
    final MessageReceiver.Waiting expected;
    synchronized (this) {
      left = new LinkedHashMap<>(waiting);
      waiting.clear();
      received = buffers;
      buffers = null;
      expected = messages;
    }
    if (expected != null) {
      expected.end();
    }
    try {
      if (cause == null) {
        left.forEach((index, block) -> sink.arrived(block, received.payload(index)));
      } else {
        sink.failed(left.values(), cause);
        if (getsLeft.get() == 0) {
          closeLease();
        }
      }
    } finally {
      if (received != null) {
        received.release();
      }
    }
  }
}
