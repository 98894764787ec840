package io.zerohop.shuffle.transport.remote;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Message;
import io.zerohop.device.Transitions;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.extent.ExtentList;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.Transport.Payload;
import io.zerohop.shuffle.transport.Transport.Sink;
import io.zerohop.shuffle.transport.remote.Slabs.Slab;
import io.zerohop.shuffle.transport.remote.Wire.Questions;
import io.zerohop.shuffle.transport.remote.Wire.RemoteExtents;
import io.zerohop.shuffle.transport.remote.Wire.RemoteExtents.ReceiveLayout;
import io.zerohop.shuffle.transport.remote.Wire.RemoteExtents.ReceiveLayout.Part;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of one window on their way from one owner: looked up and held by the owner, moved, and
 * handed out. Steps run on the threads of whatever they waited for, or on the executor; none waits.
 *
 * <p>The owner keeps the blocks by a lease. It is given back when the transfer has failed and
 * nothing {@linkplain #beginReading reads} under it any more; who succeeds has given it back.
 */
public abstract class RemoteTransfer {
  /** The steps of a transfer. */
  enum State {
    /** The owner was asked for them. */
    ASKING,

    /** The owner holds some by a lease. */
    HOLDING,

    /** Each was handed out or has failed. */
    ENDED;

    static final Transitions<State> TRANSITIONS =
        new Transitions<>(Map.of(ASKING, Set.of(HOLDING, ENDED), HOLDING, Set.of(ENDED)));
  }

  private final RemotePeer peer;
  private final List<Block> blocks;
  private final Sink sink;
  protected final Slabs slabs;
  protected final Executor executor;
  private volatile State state = State.ASKING; // Changed under the lock.
  private volatile long lastProgress;

  /** Whether the owner has been asked for what it gives when it is its turn, and nothing came. */
  private volatile boolean queued;

  /** Blocks that nothing was said of yet, by their place in the request. */
  @GuardedBy("this")
  private final Map<Integer, Block> waiting = new LinkedHashMap<>();

  /** 0 before the owner has granted one. */
  private volatile long lease;

  /** Whether memory of the owner may be read under the lease. */
  @GuardedBy("this")
  private boolean reading;

  /** There once the owner has answered. */
  private @Nullable RemoteExtents extents;

  @GuardedBy("this")
  private @Nullable ReceiveBuffers buffers;

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
   * A transfer that has not begun.
   *
   * @param blocks of one shuffle, each reported to the sink once
   * @param slabs what they are received in
   * @param executor makes steps that take some time
   */
  protected RemoteTransfer(
      final RemotePeer peer,
      final List<Block> blocks,
      final Sink sink,
      final Slabs slabs,
      final Executor executor) {
    this.peer = peer;
    this.blocks = blocks;
    this.sink = sink;
    this.slabs = slabs;
    this.executor = executor;
    this.lastProgress = peer.clock().nanos();
    for (int i = 0; i < blocks.size(); i++) {
      waiting.put(i, blocks.get(i));
    }
  }

  public final void start() {
    peer.begin(this);
    ask(Questions.open(blocks)).thenAcceptAsync(this::opened, executor).exceptionally(this::failed);
  }

  private void opened(final ByteBuffer answer) {
    if (!hold(answer.getLong())) {
      return;
    }
    final RemoteExtents answered = RemoteExtents.read(answer);
    extents = answered;
    if (answered.blocks() != blocks.size()) {
      throw new IllegalArgumentException("the owner's response is about other blocks");
    }
    final List<Block> missing = dropMissing(answered);
    sink.failed(
        missing, new ZerohopException(Category.FALLBACK, "its owner does not hold it in memory"));
    if (missing.size() == blocks.size()) {
      end(null, true);
      return;
    }
    receive();
  }

  /** The owner has granted a lease; false if it came too late, and is given back. */
  private boolean hold(final long granted) {
    synchronized (this) {
      lease = granted;
      if (state == State.ASKING) {
        state = State.TRANSITIONS.go(state, State.HOLDING, this);
        return true;
      }
    }
    giveBack();
    return false;
  }

  /** From now on memory of the owner may be read; false if this has ended. */
  protected final synchronized boolean beginReading() {
    reading = state == State.HOLDING;
    return reading;
  }

  /** Nothing of it is read any more; false if this has ended. */
  protected final boolean endReading() {
    synchronized (this) {
      reading = false;
      if (state == State.HOLDING) {
        return true;
      }
    }
    giveBack();
    return false;
  }

  /** The extents are known; has the blocks come. */
  protected abstract void receive();

  /** It ends; called once, before anything is handed out. */
  protected void ending() {}

  /** Returns whether a byte of a block was damaged on its way. */
  protected boolean isDamaged(final int block, final ReceiveBuffers received) {
    return false;
  }

  protected final long lease() {
    return lease;
  }

  /** What the owner has answered, in {@link #receive} and behind it. */
  protected final RemoteExtents extents() {
    final RemoteExtents answered = extents;
    if (answered == null) {
      throw new IllegalStateException("the owner has not answered");
    }
    return answered;
  }

  protected final boolean hasEnded() {
    return state == State.ENDED;
  }

  private synchronized List<Block> dropMissing(final RemoteExtents answered) {
    final List<Block> missing = new ArrayList<>();
    for (int i = 0; i < blocks.size(); i++) {
      if (answered.end(i) == answered.begin(i) && waiting.remove(i) != null) {
        missing.add(blocks.get(i));
      }
    }
    return missing;
  }

  /**
   * Blocks are received here from now on.
   *
   * @param there owned from now on
   * @return the same, held for the caller, too; absent if this has ended
   */
  protected final @Nullable ReceiveBuffers receiveInto(final ReceiveBuffers there) {
    synchronized (this) {
      if (!hasEnded()) {
        buffers = there;
        there.retain();
        return there;
      }
    }
    there.release();
    return null;
  }

  /** The memory, held for the caller, too; absent if there is none, or this has ended. */
  protected final synchronized @Nullable ReceiveBuffers current() {
    if (buffers != null) {
      buffers.retain();
    }
    return buffers;
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

  /**
   * Asks the owner for what it gives one reader after the other. Until then an owner that answers
   * pings is alive, however long its queue is: nothing comes in the meantime, and to ask anew would
   * be to stand at the end of it. It keeps the lease for a limited time.
   */
  protected final CompletableFuture<ByteBuffer> askInTurn(final ByteBuffer question) {
    queued = true;
    return peer.ask(question, RemoteService.LEASE_LIMIT)
        .thenApply(
            answer -> {
              progress();
              return answer;
            });
  }

  /** Records progress: bytes have arrived. Any thread. */
  protected final void progress() {
    queued = false;
    lastProgress = peer.clock().nanos();
    peer.progress();
  }

  /** Gives up if nothing has come for so long, or its turn not in the time of a lease. */
  final void checkStalled(final long limit) {
    final long nanos = queued ? Math.max(limit, RemoteService.LEASE_LIMIT.toNanos()) : limit;
    if (peer.clock().since(lastProgress) > nanos) {
      fail(
          new ZerohopException(
              Category.RETRY,
              ShuffleCode.TRANSFER_STALLED.says(
                  "a transfer stalled for " + nanos / 1_000_000_000 + " s")));
    }
  }

  /** All is there, and the owner has ended the lease. */
  protected final void succeed() {
    end(null, false);
  }

  private void giveBack() {
    if (peer.alive()) {
      peer.ask(Questions.close(lease));
    }
  }

  /**
   * Ends the transfer after a failure on the way, which does not mean that this path cannot read
   * the blocks.
   */
  protected final Void failed(final Throwable wrapped) {
    final Throwable inner = wrapped instanceof CompletionException ? wrapped.getCause() : null;
    final Throwable cause = inner == null ? wrapped : inner;
    fail(
        cause instanceof ExchangeException
            ? new ZerohopException(Category.RETRY, Message.of(cause), cause)
            : cause);
    return null;
  }

  /** Gives up, unless it has ended. Any thread. */
  protected final void fail(final Throwable cause) {
    end(cause, true);
  }

  /**
   * @param holds whether the lease is still held, if there is one
   */
  private void end(final @Nullable Throwable cause, final boolean holds) {
    final Map<Integer, Block> left;
    final ReceiveBuffers received;
    final boolean givesBack;
    synchronized (this) {
      if (hasEnded()) {
        return;
      }
      state = State.TRANSITIONS.go(state, State.ENDED, this);
      givesBack = holds && !reading && lease != 0;
      left = new LinkedHashMap<>(waiting);
      waiting.clear();
      received = buffers;
      buffers = null;
    }
    peer.end(this);
    ending();
    try {
      if (cause != null) {
        sink.failed(left.values(), cause);
      } else if (received != null) {
        handOut(left, received);
      }
    } finally {
      if (received != null) {
        received.release();
      }
      if (givesBack) {
        giveBack();
      }
    }
  }

  @Override
  public String toString() {
    return "the transfer of " + blocks.size() + " blocks of executor " + peer.name();
  }

  /** But for those that were damaged: they alone fail. */
  private void handOut(final Map<Integer, Block> left, final ReceiveBuffers received) {
    final List<Block> damaged = new ArrayList<>();
    left.forEach(
        (index, block) -> {
          if (isDamaged(index, received)) {
            damaged.add(block);
          } else {
            sink.arrived(block, received.payload(index));
          }
        });
    if (!damaged.isEmpty()) {
      sink.failed(
          damaged,
          new ZerohopException(
              Category.RETRY,
              ShuffleCode.MESSAGE_DAMAGED.says("the block was damaged on its way from its owner")));
    }
  }

  /**
   * The memory into which the blocks of one request are received: on the host, or on this GPU for
   * blocks from the owner's GPU memory. Holds the memory until it is released, once. Not changed;
   * thread safe.
   *
   * @param host the layout of the extents that are received on the host
   * @param gpu the layout of those that are received in GPU memory; absent, with its memory, if
   *     there are none
   * @param byFabric whether GPU memory is copied here by this GPU itself
   */
  protected record ReceiveBuffers(
      RemoteExtents extents,
      ReceiveLayout host,
      Slab hostSlab,
      @Nullable ReceiveLayout gpu,
      @Nullable Slab gpuSlab,
      boolean byFabric) {

    /** Returns buffers for all extents on the host. */
    public static ReceiveBuffers onHost(final RemoteExtents extents, final Slabs slabs) {
      final ReceiveLayout all = new ReceiveLayout(extents, Part.ALL);
      return new ReceiveBuffers(extents, all, slabs.take(all.bytes()), null, null, false);
    }

    /**
     * Each extent in the kind of memory that it lies in.
     *
     * @param gpu GPU memory for what lies in the owner's, as {@code layout} places it; owned from
     *     now on, also if this fails
     * @param byFabric whether this GPU itself copies there, from an owner's memory that it has
     *     mapped
     */
    public static ReceiveBuffers inKind(
        final RemoteExtents extents,
        final Slabs slabs,
        final ReceiveLayout layout,
        final Slab gpu,
        final boolean byFabric) {
      try (Undo undo = new Undo(gpu::release)) {
        final ReceiveLayout near = new ReceiveLayout(extents, Part.HOST);
        final Slab nearSlab = slabs.take(near.bytes());
        return undo.keep(new ReceiveBuffers(extents, near, nearSlab, layout, gpu, byFabric));
      }
    }

    /** A block of it, its extents as its owner wrote them, which holds the memory, too. */
    Payload payload(final int block) {
      return new ReceivedPayload(block);
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

    /** A block that was received, in memory that others share. */
    private final class ReceivedPayload implements Payload {
      private final ExtentList received = new ExtentList();
      private boolean copied;
      private long bytes;
      private volatile boolean released;

      /** Holds the memory from now on. */
      ReceivedPayload(final int block) {
        retain();
        for (int i = extents.begin(block); i < extents.end(block); i++) {
          received.add(
              address(i),
              extents.length(i),
              isOnGpu(i),
              null,
              extents.isChecked(i),
              extents.checksum(i));
          bytes += extents.length(i);
          copied |= isOnGpu(i) && byFabric;
        }
      }

      @Override
      public long bytes() {
        return bytes;
      }

      @Override
      public BlockPath path(final BlockPath asked) {
        return copied ? BlockPath.PEER : asked;
      }

      @Override
      public ExtentList extents() {
        return received;
      }

      @Override
      public InputStream open(final BooleanSupplier ended) {
        return received.stream(0, received.size(), () -> !released);
      }

      @Override
      public void release() {
        released = true;
        ReceiveBuffers.this.release();
      }
    }
  }
}
