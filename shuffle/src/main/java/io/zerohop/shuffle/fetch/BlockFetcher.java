package io.zerohop.shuffle.fetch;

import io.zerohop.device.Message;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.fetch.route.PathChooser.Route;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import io.zerohop.shuffle.transport.Transport.NotGettableException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Fetches the blocks of one reader, owner by owner and window by window. Staged blocks are asked
 * for first, so that they travel while blocks in place are read.
 *
 * <p>A block in memory stays readable until the reader asks for the second such block behind it, or
 * until {@link #close}: rows that point into it may be in use while the reader looks ahead. A
 * window in place is one lease, which ends with its last block; so a fetcher for the host holds two
 * leases at most, each on a lane of its own. A reader closes the fetcher as soon as all blocks were
 * handed out, and does not wait for its task to end: a lease keeps all that its owner gives up
 * meanwhile from being freed. Nobody waits for a lease to end but memory that waits to be freed. A
 * block that is only a stream is released with the next call of {@link #next}. For a reader on the
 * GPU blocks stay readable until {@link #releaseWindows}: it gathers what came from many owners at
 * once.
 *
 * <p>One thread at a time asks for blocks. Any thread may close the fetcher meanwhile, as a task's
 * end does while a thread that the task started still reads: that ends every wait, whatever was
 * being opened is released, and {@link #next} fails. Blocks must not be read any more then; a
 * reader that may be overtaken asks {@link #isClosed} before each row.
 */
public final class BlockFetcher implements AutoCloseable {
  private static final long CLOSE_PATIENCE_MILLIS = 1_000;

  /** How often a block of another node is asked for there before it is staged. */
  private static final int MAX_ATTEMPTS = 2;

  /** After so many blocks of other nodes a reader on the GPU looks whether it has enough. */
  private static final int RECEIVED_WINDOW = 64;

  private final FetchContext context;

  /** What to fetch, until a way was chosen for each: then only what is left to read is kept. */
  private List<BlockSource> sources;

  private final FetchListener listener;
  private final ReadSide side;
  private final BooleanSupplier ended;
  private final BlockTransfers transfers;
  private final FetchPlan plan;

  /** Held by the thread that works on the windows and queues; closing waits for it only shortly. */
  private final ReentrantLock lock = new ReentrantLock();

  /** Blocks of other nodes that were handed out. */
  private int received;

  private boolean planned;

  /** Sources whose owners have to be connected before anything else is known of them. */
  private final Deque<BlockSource> unmet = new ArrayDeque<>();

  /** The window in place whose blocks are handed out; absent as soon as the last of them was. */
  private @Nullable InPlaceWindow window;

  /** Blocks that were handed out before the current one and may still be read. */
  private final Deque<FetchedBlock> passed = new ArrayDeque<>();

  private volatile @Nullable FetchedBlock block;
  private volatile boolean closed;

  /**
   * @param sources what to fetch; blocks of one source come in order, sources in any
   * @param fallback moves what can be had in no other way
   * @param side who reads them
   * @param cancelled asked often; true ends any wait
   */
  public BlockFetcher(
      final FetchContext context,
      final List<BlockSource> sources,
      final FallbackTransport fallback,
      final FetchListener listener,
      final ReadSide side,
      final BooleanSupplier cancelled) {
    this.context = context;
    this.sources = List.copyOf(sources);
    this.listener = listener;
    this.side = side;
    this.ended = () -> closed || cancelled.getAsBoolean();
    this.plan = new FetchPlan(context, fallback, side);
    this.transfers =
        new BlockTransfers(context, context.transports(side, fallback), side, this::again);
  }

  /**
   * Moves to the next block, and waits for it if need be.
   *
   * @return false when all blocks were handed out
   * @throws BlockFetchException (FETCH_FAILED) if a block cannot be read
   * @throws WaitException (RETRY) if cancelled
   * @throws ZerohopException (RETRY) if the ways that are allowed do not suffice
   * @throws IllegalStateException if the fetcher is closed, or was closed meanwhile
   */
  public boolean next() {
    final boolean[] found = new boolean[1];
    whileOpen(() -> found[0] = advance());
    return found[0];
  }

  /**
   * Runs a step that nobody else's step, nor the release by {@link #close}, can meet half way. Who
   * closes and cannot wait for the step leaves the release to it.
   */
  private void whileOpen(final Runnable step) {
    lock.lock();
    try {
      checkOpen();
      step.run();
    } catch (final RuntimeException e) {
      if (closed && !(e instanceof IllegalStateException)) {
        throw new IllegalStateException("the fetcher was closed while it was at work", e);
      }
      throw e;
    } finally {
      lock.unlock();
      if (closed && !lock.isHeldByCurrentThread() && lock.tryLock()) {
        releaseAll();
      }
    }
    checkOpen();
  }

  private void checkOpen() {
    if (closed) {
      throw new IllegalStateException("the fetcher is closed");
    }
  }

  private boolean advance() {
    pass();
    if (side == ReadSide.HOST) {
      releasePassed(1);
    }
    plan();
    for (; ; ) {
      if (ended.getAsBoolean()) {
        throw new WaitException(WaitException.Reason.CANCELLED, "the fetch was cancelled");
      }
      transfers.start();
      if (pollStaged() || nextInPlace()) {
        return true;
      }
      // One more owner is connected where nothing else is under way, or there is nothing else to
      // do.
      if (!unmet.isEmpty() && (plan.isEmpty() || !transfers.isWaiting())) {
        timed(this::meetNext);
      } else if (!plan.isEmpty()) {
        timed(this::openWindow);
      } else if (transfers.isWaiting()) {
        timed(() -> transfers.await(ended));
      } else if (transfers.hasPending()) {
        timed(() -> transfers.startOne(ended));
      } else {
        checkReadable();
        return false;
      }
    }
  }

  /** The reader moves on: what it still may read of the current block is kept for it. */
  private void pass() {
    transfers.endReservation();
    final FetchedBlock current = block;
    block = null;
    if (current == null) {
      return;
    }
    if (current.extentCount() == 0) {
      current.release();
    } else {
      passed.add(current);
    }
  }

  private void releasePassed(final int kept) {
    while (passed.size() > kept) {
      passed.poll().release();
    }
  }

  private void checkReadable() {
    passed.forEach(FetchedBlock::checkIntact);
    final FetchedBlock current = block;
    if (current != null) {
      current.checkIntact();
    }
    if (window != null) {
      window.checkIntact();
    }
  }

  /** Returns whether the current block is the last of its window; true of every staged block. */
  public boolean endsWindow() {
    if (block().isReceived()) {
      return received % RECEIVED_WINDOW == 0 || (unmet.isEmpty() && !transfers.hasArrived());
    }
    return block().path() == Path.STAGED || window == null;
  }

  /** The current block. */
  public FetchedBlock block() {
    final FetchedBlock current = block;
    if (current == null) {
      throw new IllegalStateException("there is no current block");
    }
    return current;
  }

  /**
   * Makes sure that what was handed out and can still be read was what its owner had written.
   * {@link #next} does so for windows that it leaves, and for all at the end; a reader that stops
   * early and uses what it has read calls this before it closes. Does not wait.
   *
   * @throws BlockFetchException if an owner may have freed blocks while they were being read
   * @throws IllegalStateException if the fetcher is closed
   */
  public void checkIntact() {
    whileOpen(this::checkReadable);
  }

  /**
   * Returns whether there are blocks behind the current one. Does not wait: a block that failed and
   * is asked for again counts until it is handed out. To be called after {@link #next}.
   */
  public boolean hasMore() {
    return !unmet.isEmpty()
        || !plan.isEmpty()
        || window != null
        || transfers.hasPending()
        || transfers.isWaiting();
  }

  /** Returns whether the fetcher was closed; one volatile load. */
  public boolean isClosed() {
    return closed;
  }

  /**
   * Chooses the ways that are known at once. First contact takes some milliseconds, or seconds with
   * an owner that says nothing, and there may be a thousand owners: so they are connected one by
   * one while what is there already is handed out.
   */
  private void plan() {
    if (planned) {
      return;
    }
    planned = true;
    for (final BlockSource source : sources) {
      if (source.blocks().isEmpty() || closed) {
        continue;
      }
      if (context.paths().connectsFirst(source)) {
        unmet.add(source);
      } else {
        timed(() -> route(source));
      }
    }
    sources = List.of();
  }

  /** The next owner, and those behind it that others have met in the meantime. */
  private void meetNext() {
    do {
      route(unmet.poll());
    } while (!unmet.isEmpty() && !closed && !context.paths().connectsFirst(unmet.peek()));
  }

  private void route(final BlockSource source) {
    final Route moved = plan.add(source);
    if (moved != null) {
      move(source, source.blocks(), moved);
    }
  }

  private void move(final BlockSource source, final List<Block> blocks, final Route by) {
    final Message whyStaged = by.reason();
    if (whyStaged != null) {
      listener.fellBack(source, blocks, whyStaged);
    }
    transfers.add(source, blocks, by.path());
  }

  /** How to try again what could not be had from another node's memory. May connect to it. */
  private Path again(
      final BlockSource source, final Block failed, final Throwable cause, final int attempts) {
    final boolean onlySent = cause instanceof NotGettableException;
    final boolean elsewhere =
        !onlySent
            && cause instanceof ZerohopException known
            && known.category() == ZerohopException.Category.FALLBACK;
    if (elsewhere || !onlySent && attempts + 1 >= MAX_ATTEMPTS) {
      context.paths().staged(source.executorId(), Message.of(cause));
      listener.fellBack(source, List.of(failed), Message.of(cause));
      return Path.STAGED;
    }
    final Route route =
        onlySent ? plan.withoutGets(source, Message.of(cause)) : plan.choose(source);
    if (route.path().isMoved()) {
      return route.path();
    }
    final Message whyStaged = route.reason();
    listener.fellBack(source, List.of(failed), whyStaged == null ? Message.of(cause) : whyStaged);
    return Path.STAGED;
  }

  private boolean pollStaged() {
    final FetchedBlock arrived = transfers.poll();
    block = arrived;
    if (arrived == null) {
      return false;
    }
    received += arrived.isReceived() ? 1 : 0;
    count(arrived.source(), Link.of(arrived.path()), List.of(arrived.block()), arrived.bytes());
    return true;
  }

  private boolean nextInPlace() {
    final InPlaceWindow open = window;
    if (open == null) {
      return false;
    }
    block = open.next();
    if (!open.hasNext()) {
      window = null; // It ends with that block.
    }
    return true;
  }

  private void openWindow() {
    final FetchPlan.Request request = plan.next();
    final InPlaceWindow opened =
        InPlaceWindow.open(
            context, request.source(), request.memory(), request.blocks(), side, ended);
    if (opened == null) {
      if (!plan.reroute(request)) {
        stage(
            request.source(),
            request.blocks(),
            ShuffleCode.NO_LANE_FREE.says("the owner has no lane free for another reader"));
      }
      return;
    }
    if (request.memory().isLeft()) {
      failIfLost(request.source(), opened);
    }
    if (opened.size() == 0) {
      opened.close();
    } else {
      window = opened;
      opened.count((link, blocks, bytes) -> count(request.source(), link, blocks, bytes));
    }
    stage(
        request.source(),
        opened.notHeld(),
        ShuffleCode.NOT_IN_MEMORY.says("the owner does not hold the blocks in memory"));
    final Message whyNotMapped = opened.whyNotMapped();
    if (whyNotMapped != null) {
      final Route other = plan.withoutGets(request.source(), whyNotMapped);
      move(request.source(), opened.notMapped(), other);
    }
  }

  /** The owner has ended: nobody can send or stage what cannot be read in place. */
  private static void failIfLost(final BlockSource source, final InPlaceWindow opened) {
    final List<Block> lost = opened.notHeld().isEmpty() ? opened.notMapped() : opened.notHeld();
    if (!lost.isEmpty()) {
      final Message why = opened.whyNotMapped();
      opened.close();
      final Message what =
          ShuffleCode.LEFT_NOT_KEPT.says(
              "a block of an executor that ended cannot be read from its keeper");
      throw BlockFetchException.of(
          lost.get(0), source, Path.PEER, why == null ? what : what.because(why), null);
    }
  }

  private void stage(final BlockSource source, final List<Block> blocks, final Message reason) {
    if (!blocks.isEmpty()) {
      context.paths().staged(source.executorId(), reason);
      listener.fellBack(source, blocks, reason);
      transfers.add(source, blocks, Path.STAGED);
    }
  }

  /**
   * Releases all blocks that were handed out, the current one too, for a reader that has gathered
   * or copied them.
   *
   * @throws BlockFetchException if an owner may have freed blocks meanwhile
   * @throws IllegalStateException if the fetcher is closed
   */
  public void releaseWindows() {
    whileOpen(
        () -> {
          pass();
          releasePassed(0);
        });
  }

  private void count(
      final BlockSource source, final Link link, final List<Block> blocks, final long bytes) {
    context.counters().add(link, blocks.size(), bytes);
    listener.fetched(source, link, blocks, bytes);
  }

  private void timed(final Runnable step) {
    final long begin = context.clock().nanos();
    try {
      step.run();
    } finally {
      final long nanos = context.clock().since(begin);
      context.counters().waited(nanos);
      listener.waited(nanos);
    }
  }

  /**
   * Ends all leases and gives all receive buffers back. If another thread is in {@link #next} and
   * does not come out soon, that one releases what is held, as soon as it does. Idempotent.
   */
  @Override
  public void close() {
    closed = true;
    if (!lock.isHeldByCurrentThread() && tryLock()) {
      releaseAll();
    }
  }

  private boolean tryLock() {
    if (lock.tryLock()) {
      return true; // Even if this thread is interrupted, as killed tasks are.
    }
    try {
      return lock.tryLock(CLOSE_PATIENCE_MILLIS, TimeUnit.MILLISECONDS);
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** Unlocks in the end. What was released before is not there any more. */
  private void releaseAll() {
    try {
      sources = List.of();
      unmet.clear();
      plan.clear();
      transfers.close();
    } finally {
      try {
        endReadable();
      } finally {
        lock.unlock();
      }
    }
  }

  /** Releases all that can be read, without a look at whether it was intact. */
  private void endReadable() {
    final FetchedBlock current = block;
    block = null;
    if (current != null) {
      passed.add(current);
    }
    while (!passed.isEmpty()) {
      passed.poll().discard();
    }
    if (window != null) {
      window.close();
      window = null;
    }
  }
}
