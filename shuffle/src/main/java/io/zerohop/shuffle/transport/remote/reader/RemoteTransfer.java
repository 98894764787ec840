package io.zerohop.shuffle.transport.remote.reader;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.Transport.Sink;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import io.zerohop.shuffle.transport.remote.wire.Questions;
import io.zerohop.shuffle.transport.remote.wire.RemoteExtents;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/**
 * The blocks of one window on their way from one owner: looked up and held by the owner, sent, and
 * handed out. Everything comes to the host; a carrier that has other ways besides extends this.
 * Steps run on the threads of whatever they waited for, or on the executor; none waits.
 */
public class RemoteTransfer {
  private final RemotePeer peer;
  private final List<Block> blocks;
  private final Sink sink;
  private final Slabs slabs;
  private final MessageReceiver arrivals;
  private final Executor executor;
  private final AtomicBoolean ended = new AtomicBoolean();
  private volatile long lastProgress;

  /** Blocks that nothing was said of yet, by their place in the request. */
  @GuardedBy("this")
  private final Map<Integer, Block> waiting = new LinkedHashMap<>();

  /** Ways that bytes come by, and that have not ended. */
  private final AtomicInteger waysLeft = new AtomicInteger();

  private volatile long lease;
  private volatile boolean leaseEndsItself;
  private RemoteExtents extents;

  @GuardedBy("this")
  private ReceiveBuffers buffers;

  /** What takes the messages, if it comes to that. */
  @GuardedBy("this")
  private MessageReceiver.Waiting messages;

  /** Starts a transfer for each run of blocks of one shuffle, which is all that one can ask for. */
  public static void startEach(
      final List<Block> blocks, final Function<List<Block>, RemoteTransfer> maker) {
    for (int from = 0; from < blocks.size(); ) {
      int end = from + 1;
      while (end < blocks.size() && blocks.get(end).shuffleId() == blocks.get(from).shuffleId()) {
        end++;
      }
      maker.apply(blocks.subList(from, end)).start();
      from = end;
    }
  }

  /**
   * Blocks that are to come.
   *
   * @param blocks of one shuffle, each reported to the sink once
   * @param slabs what they are received in
   * @param executor makes steps that take some time
   */
  public RemoteTransfer(
      final RemotePeer peer,
      final List<Block> blocks,
      final Sink sink,
      final Slabs slabs,
      final MessageReceiver arrivals,
      final Executor executor) {
    this.peer = peer;
    this.blocks = blocks;
    this.sink = sink;
    this.slabs = slabs;
    this.arrivals = arrivals;
    this.executor = executor;
    this.lastProgress = peer.clock().nanos();
    for (int i = 0; i < blocks.size(); i++) {
      waiting.put(i, blocks.get(i));
    }
  }

  public final void start() {
    peer.begin(this);
    ask(Questions.open(blocks, takesGpuMemory()))
        .thenAcceptAsync(this::opened, executor)
        .exceptionally(this::failed);
  }

  private void opened(final ByteBuffer answer) {
    lease = answer.getLong();
    final boolean onlyByMessage = answer.get() != 0;
    extents = RemoteExtents.read(answer);
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
    receive(onlyByMessage);
  }

  /** Whether GPU memory could come as it is. */
  protected boolean takesGpuMemory() {
    return false;
  }

  /**
   * The extents are known; has the blocks come.
   *
   * @param onlyByMessage whether something of it can only be sent
   */
  protected void receive(final boolean onlyByMessage) {
    moveByMessages();
  }

  /** Whether bytes may still come to the memory other than by messages, after all has ended. */
  protected boolean isStillReading() {
    return false;
  }

  protected final RemoteExtents extents() {
    return extents;
  }

  protected final Slabs slabs() {
    return slabs;
  }

  protected final Executor executor() {
    return executor;
  }

  protected final boolean hasEnded() {
    return ended.get();
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

  /** From now on it is received here, and not where it was before; false if it has ended. */
  protected final boolean receiveInto(final ReceiveBuffers there) {
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

  /** Everything to the host; the owner copies what lies in GPU memory. */
  protected final void moveByMessages() {
    final ReceiveBuffers to = ReceiveBuffers.onHost(extents, slabs);
    if (receiveInto(to)) {
      leaseEndsItself = true;
      ways(1);
      askForMessages(to, false);
    } else {
      closeLease();
    }
  }

  /** So many ways have to end, each by {@link #wayEnded}, until all is there. */
  protected final void ways(final int count) {
    waysLeft.set(count);
  }

  /**
   * Has the owner send.
   *
   * @param hostOnly what lies in the owner's host memory, and not the rest
   */
  protected final void askForMessages(final ReceiveBuffers to, final boolean hostOnly) {
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
  protected final synchronized ReceiveBuffers current() {
    if (buffers != null) {
      buffers.retain();
    }
    return buffers;
  }

  /** One of the ways has brought what it had to. */
  protected final void wayEnded() {
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

  /** Asks the owner; an answer is progress. */
  protected final CompletableFuture<ByteBuffer> ask(final ByteBuffer question) {
    return peer.ask(question)
        .thenApply(
            answer -> {
              progress();
              return answer;
            });
  }

  /** Something came. Any thread. */
  protected final void progress() {
    lastProgress = peer.clock().nanos();
    peer.progress();
  }

  /** Gives up if nothing has come for so long. */
  final void checkStalled(final long nanos) {
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

  /** Nothing more is read under the lease. */
  protected final void closeLease() {
    if (lease != 0 && peer.alive()) {
      peer.ask(Questions.close(lease));
    }
  }

  /** What went wrong on the way does not say that the blocks cannot be had this way. */
  protected final Void failed(final Throwable wrapped) {
    final Throwable cause = wrapped instanceof CompletionException ? wrapped.getCause() : wrapped;
    fail(
        cause instanceof ExchangeException
            ? new ZerohopException(Category.RETRY, cause.getMessage(), cause)
            : cause);
    return null;
  }

  /** Gives up, unless it has ended. Any thread. */
  protected final void fail(final Throwable cause) {
    end(cause);
  }

  /** Takes out the blocks of which a byte was damaged on its way: they alone fail. */
  private List<Block> takeDamaged(
      final Map<Integer, Block> left,
      final ReceiveBuffers received,
      final MessageReceiver.Waiting expected) {
    final List<Block> damaged = new ArrayList<>();
    if (expected != null) {
      left.entrySet()
          .removeIf(
              entry -> {
                final boolean isDamaged = isDamaged(entry.getKey(), received, expected);
                if (isDamaged) {
                  damaged.add(entry.getValue());
                }
                return isDamaged;
              });
    }
    return damaged;
  }

  private boolean isDamaged(
      final int block, final ReceiveBuffers received, final MessageReceiver.Waiting expected) {
    for (int extent = extents.begin(block); extent < extents.end(block); extent++) {
      if (!received.isOnGpu(extent)) {
        final long place = received.host().place(extent);
        if (expected.isDamaged(place, place + extents.length(extent))) {
          return true;
        }
      }
    }
    return false;
  }

  private static ZerohopException damage() {
    return new ZerohopException(
        Category.RETRY,
        ShuffleCode.MESSAGE_DAMAGED.marked("it was damaged on its way from its owner"));
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
        final List<Block> damaged = takeDamaged(left, received, expected);
        left.forEach((index, block) -> sink.arrived(block, received.payload(index)));
        if (!damaged.isEmpty()) {
          sink.failed(damaged, damage());
        }
      } else {
        sink.failed(left.values(), cause);
        if (!isStillReading()) {
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
