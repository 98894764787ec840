package io.zerohop.shuffle.transport.ucx;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.shuffle.Block;
import io.zerohop.shuffle.transport.StagedTransport.Sink;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The blocks of one window on their way from one owner: looked up and held by the owner, moved into
 * one slab, and handed out if the owner says at the end that it held them all the time. Steps run
 * on the threads of whatever they waited for, or on the executor; none waits.
 */
final class RemoteTransfer {
  private final RemotePeer peer;
  private final List<Block> blocks;
  private final Sink sink;
  private final Slabs slabs;
  private final Arrivals arrivals;
  private final Executor executor;
  private final AtomicBoolean ended = new AtomicBoolean();

  /** Gets that have not ended, wanted or not. */
  private final AtomicInteger getsLeft = new AtomicInteger();

  private volatile long lastProgress = System.nanoTime();

  /** Blocks that nothing was said of yet, by their place in the request. Guarded by this. */
  private final Map<Integer, Block> waiting = new LinkedHashMap<>();

  private volatile long lease;
  private RemoteExtents extents;
  private LandingLayout layout;

  /** Guarded by this. */
  private Slabs.Slab slab;

  /** What takes the messages, if it comes to that. Guarded by this. */
  private Arrivals.Waiting messages;

  RemoteTransfer(
      final RemotePeer peer,
      final List<Block> blocks,
      final Sink sink,
      final Slabs slabs,
      final Arrivals arrivals,
      final Executor executor) {
    this.peer = peer;
    this.blocks = blocks;
    this.sink = sink;
    this.slabs = slabs;
    this.arrivals = arrivals;
    this.executor = executor;
    for (int i = 0; i < blocks.size(); i++) {
      waiting.put(i, blocks.get(i));
    }
  }

  void start() {
    peer.begin(this);
    ask(openQuestion()).thenAcceptAsync(this::opened, executor).exceptionally(this::failed);
  }

  private ByteBuffer openQuestion() {
    final ByteBuffer question = ByteBuffer.allocate(9 + 12 * blocks.size());
    question.put(Wire.OPEN).putInt(blocks.get(0).shuffleId()).putInt(blocks.size());
    for (final Block block : blocks) {
      question.putLong(block.mapId()).putInt(block.partition());
    }
    return question.flip();
  }

  private void opened(final ByteBuffer answer) {
    lease = answer.getLong();
    final boolean byMessage = answer.get() != 0;
    extents = RemoteExtents.read(answer);
    if (extents.blocks() != blocks.size()) {
      throw new IllegalArgumentException("the owner answers for other blocks");
    }
    final List<Block> missing = dropMissing();
    sink.failed(missing, notHeld());
    if (missing.size() == blocks.size()) {
      closeLease();
      end(null);
    } else if (!takeSlab()) {
      closeLease(); // It has failed meanwhile.
    } else if (byMessage || peer.byMessage()) {
      takeMessages();
    } else {
      fetchKeys();
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

  private boolean takeSlab() {
    layout = new LandingLayout(extents);
    final Slabs.Slab taken = slabs.take(layout.bytes());
    synchronized (this) {
      if (!ended.get()) {
        slab = taken;
        return true;
      }
    }
    taken.release();
    return false;
  }

  private static ZerohopException notHeld() {
    return new ZerohopException(Category.FALLBACK, "its owner does not hold it in memory");
  }

  private void takeMessages() {
    final Arrivals.Waiting all;
    synchronized (this) {
      if (slab == null) {
        all = null; // It has ended.
      } else {
        all = arrivals.expect(slab, layout.bytes(), this::progress);
        messages = all;
      }
    }
    if (all == null) {
      closeLease();
      return;
    }
    final ByteBuffer question = ByteBuffer.allocate(17);
    question.put(Wire.SEND).putLong(lease).putLong(all.id()).flip();
    ask(question)
        .thenAccept(answer -> all.total(answer.getLong()))
        .thenCompose(sent -> all.complete())
        .thenRunAsync(() -> end(null), executor)
        .exceptionally(this::failed);
  }

  private void fetchKeys() {
    final Set<Long> unknown = new LinkedHashSet<>();
    for (int i = 0; i < extents.size(); i++) {
      if (peer.key(extents.segment(i)) == null) {
        unknown.add(extents.segment(i));
      }
    }
    if (unknown.isEmpty()) {
      get();
      return;
    }
    final ByteBuffer question = ByteBuffer.allocate(5 + 8 * unknown.size());
    question.put(Wire.KEYS).putInt(unknown.size());
    unknown.forEach(question::putLong);
    ask(question.flip())
        .thenAcceptAsync(
            answer -> {
              for (final long segment : unknown) {
                final long address = answer.getLong();
                peer.key(segment, new RemotePeer.SegmentKey(address, Wire.bytes(answer)));
              }
              get();
            },
            executor)
        .exceptionally(this::failed);
  }

  private void get() {
    for (int i = 0; i < extents.size(); i++) {
      if (peer.key(extents.segment(i)).key().length == 0) {
        takeMessages(); // A segment that its owner could not register.
        return;
      }
    }
    final Slabs.Slab to = current();
    if (to == null) {
      closeLease();
      return;
    }
    final List<Gets.Get> pieces = pieces(to);
    getsLeft.set(pieces.size());
    pieces.forEach(peer.gets()::submit);
    to.release();
  }

  private List<Gets.Get> pieces(final Slabs.Slab to) {
    final List<Gets.Get> pieces = new ArrayList<>();
    for (int run = 0; run < layout.runs(); run++) {
      final int first = layout.first(run);
      final RemotePeer.SegmentKey from = peer.key(extents.segment(first));
      final long bytes = layout.runBytes(run, extents);
      for (long done = 0; done < bytes; done += LandingLayout.RUN_BYTES) {
        pieces.add(
            new Gets.Get(
                from.key(),
                from.address() + extents.offset(first) + done,
                to,
                layout.place(first) + done,
                Math.min(LandingLayout.RUN_BYTES, bytes - done),
                () -> !ended.get(),
                this::got));
      }
    }
    return pieces;
  }

  /** The slab, with a reference for the caller; null if this has ended. */
  private synchronized Slabs.Slab current() {
    if (slab != null) {
      slab.retain();
    }
    return slab;
  }

  private void got(final String failure) {
    if (failure != null) {
      fail(new ZerohopException(Category.RETRY, "a get failed: " + failure));
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
    // Gets do not involve the owner: only it can tell whether the memory was still these blocks.
    ask(closeQuestion())
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
    lastProgress = System.nanoTime();
    peer.progress();
  }

  /** Gives up if nothing has come for so long. */
  void checkStalled(final long nanos) {
    if (System.nanoTime() - lastProgress > nanos) {
      fail(
          new ZerohopException(
              Category.RETRY, "nothing came of it for " + nanos / 1_000_000_000 + " s"));
    }
  }

  private void confirmed(final boolean stillHeld) {
    if (!stillHeld) {
      throw new ZerohopException(
          Category.RETRY, "its owner had let go of it while it was being read");
    }
    end(null);
  }

  private ByteBuffer closeQuestion() {
    return ByteBuffer.allocate(9).put(Wire.CLOSE).putLong(lease).flip();
  }

  private void closeLease() {
    if (lease != 0 && peer.alive()) {
      peer.ask(closeQuestion());
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
    final Slabs.Slab landed;
    final Arrivals.Waiting landing;
    synchronized (this) {
      left = new LinkedHashMap<>(waiting);
      waiting.clear();
      landed = slab;
      slab = null;
      landing = messages;
    }
    if (landing != null) {
      landing.end();
    }
    try {
      if (cause == null) {
        left.forEach(
            (index, block) ->
                sink.arrived(block, new LandedPayload(landed, extents, layout, index)));
      } else {
        sink.failed(left.values(), cause);
        if (getsLeft.get() == 0) {
          closeLease();
        }
      }
    } finally {
      if (landed != null) {
        landed.release();
      }
    }
  }
}
