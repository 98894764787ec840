package io.zerohop.shuffle.fetch;

import io.zerohop.device.Transitions;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.route.PathChooser.Route;
import io.zerohop.shuffle.transport.BlockMemory;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.agrona.CloseHelper;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of one reader, fetched owner by owner and window by window. Staged blocks are asked
 * for first, so that they travel while blocks in place are read.
 *
 * <p>A block in memory stays readable until the reader asks for the second such block behind it, or
 * until {@link #close}: rows that point into it may be in use while the reader looks ahead. A
 * window in place is one lease, which ends with its last block; so a fetch for the host holds two
 * leases at most, each on a lane of its own. A reader closes the fetch as soon as all blocks were
 * handed out, and does not wait for its task to end: a lease keeps all that its owner gives up
 * meanwhile from being freed. Nobody waits for a lease to end but memory that waits to be freed. A
 * block that is only a stream is released with the next call of {@link #next}. For a reader on the
 * GPU blocks stay readable until {@link #releaseWindows}: it gathers what came from many owners at
 * once.
 *
 * <p>One thread at a time asks for blocks. Any thread may close the fetch meanwhile, as a task's
 * end does while a thread that the task started still reads: that ends every wait, whatever was
 * being opened is released, and {@link #next} fails. Blocks must not be read any more then; a
 * reader that may be overtaken asks {@link #isClosed} before each row, or works in {@link #during}.
 * What a reader has made of blocks and owns is released by the fetch, too ({@link #releasing}), so
 * a read has one end, and one lock that decides who brings it about.
 */
public final class Fetch implements AutoCloseable {
  /** The life of a fetch. */
  enum State {
    /** Blocks are handed out. */
    OPEN,

    /** No step begins any more; the thread that is in one releases what is held. */
    CLOSING,

    /** Nothing is held. */
    RELEASED;

    static final Transitions<State> TRANSITIONS =
        new Transitions<>(Map.of(OPEN, Set.of(CLOSING), CLOSING, Set.of(RELEASED)));
  }

  private static final long CLOSE_PATIENCE_MILLIS = 1_000;

  /** After so many blocks of other nodes a reader on the GPU looks whether it has enough. */
  private static final int RECEIVED_WINDOW = 64;

  private final Fetches all;
  private final Reader reader;
  private final BlockTransfers transfers;
  private final BlockWindows windows;

  /** Held by the thread that works on the windows and queues; closing waits for it only shortly. */
  private final ReentrantLock lock = new ReentrantLock();

  /** Changed by {@link #become}. */
  private volatile State state = State.OPEN;

  /** Ends what still reads blocks. */
  private volatile Runnable reading = () -> {};

  /** Releases what the reader has made of blocks. */
  private volatile Runnable made = () -> {};

  /** Blocks of other nodes that were handed out. */
  private int received;

  private boolean planned;

  /**
   * Sources for which no way was chosen: once the fetch has begun, those whose owners have to be
   * connected first.
   */
  private final Deque<BlockSource> unmet = new ArrayDeque<>();

  /** Blocks that were handed out before the current one and may still be read. */
  private final Deque<FetchedBlock> passed = new ArrayDeque<>();

  private volatile @Nullable FetchedBlock block;

  /** As {@link Fetches#begin}. */
  Fetch(
      final Fetches all,
      final List<BlockSource> sources,
      final FallbackTransport fallback,
      final Fetches.Listener listener,
      final ReadSide side,
      final BooleanSupplier cancelled) {
    this.all = all;
    this.reader =
        new Reader(all, fallback, listener, side, () -> isClosed() || cancelled.getAsBoolean());
    this.transfers = new BlockTransfers(reader, reader.transports(), reader::again);
    this.windows = new BlockWindows(reader, transfers);
    sources.stream().filter(source -> !source.blocks().isEmpty()).forEach(unmet::add);
  }

  /**
   * Moves to the next block, and waits for it if need be.
   *
   * @return false when all blocks were handed out
   * @throws BlockFetchException (FETCH_FAILED) if a block cannot be read
   * @throws WaitException (RETRY) if cancelled
   * @throws ZerohopException (RETRY) if the ways that are allowed do not suffice
   * @throws IllegalStateException if the fetch is closed, or was closed meanwhile
   */
  public boolean next() {
    final boolean[] found = new boolean[1];
    during(() -> found[0] = advance());
    return found[0];
  }

  /**
   * Runs a step of the reader that nobody else's step, nor the release of what is held, can meet
   * half way. Who closes and cannot wait for the step leaves the release to it. Steps may call the
   * fetch.
   *
   * @throws IllegalStateException if the fetch is closed, or was closed meanwhile
   */
  public void during(final Runnable step) {
    lock.lock();
    try {
      checkOpen();
      step.run();
    } catch (final RuntimeException e) {
      throw overtaken(e);
    } finally {
      leave();
    }
    checkOpen();
  }

  private RuntimeException overtaken(final RuntimeException e) {
    return isClosed() && !(e instanceof IllegalStateException)
        ? new IllegalStateException("the fetch has ended: it was closed while it was at work", e)
        : e;
  }

  private void leave() {
    lock.unlock();
    if (isClosed() && !lock.isHeldByCurrentThread() && lock.tryLock()) {
      releaseAll(false);
    }
  }

  private void checkOpen() {
    if (isClosed()) {
      throw new IllegalStateException("the fetch has ended: it was closed");
    }
  }

  private boolean advance() {
    pass();
    if (reader.side() == ReadSide.HOST) {
      releasePassed(1);
    }
    plan();
    for (; ; ) {
      if (isEnded()) {
        throw new WaitException(WaitException.Reason.CANCELLED, "the fetch was cancelled");
      }
      final long begin = all.clock.nanos();
      if (transfers.start()) {
        reader.waited(begin); // A transport may wait before a request is under way.
      }
      if (pollMoved() || nextInPlace()) {
        return true;
      }
      // One more owner is connected where nothing else is under way, or there is nothing else to
      // do.
      if (!unmet.isEmpty() && (!windows.hasUnopened() || !transfers.isWaiting())) {
        reader.timed(this::meetNext);
      } else if (windows.hasUnopened()) {
        reader.timed(windows::open);
      } else if (transfers.isWaiting()) {
        reader.timed(transfers::await);
      } else if (transfers.hasPending()) {
        reader.timed(transfers::startOne);
      } else {
        windows.checkIntact();
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
      release(current);
    } else {
      passed.add(current);
    }
  }

  private void releasePassed(final int kept) {
    while (passed.size() > kept) {
      release(passed.remove());
    }
  }

  /** Releases a block that was read: what was moved with it, a window with the last block of it. */
  private void release(final FetchedBlock read) {
    read.releaseMoved();
    final Window last = read.lastOf();
    if (last != null) {
      windows.end(last);
    }
  }

  /** Returns whether the current block is the last of its window; true of every staged block. */
  public boolean endsWindow() {
    if (block().isReceived()) {
      return received % RECEIVED_WINDOW == 0 || (unmet.isEmpty() && !transfers.hasArrived());
    }
    return block().path() == BlockPath.STAGED || !windows.hasNext();
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
   * {@link #next} does so for windows that it leaves, and for all at the end; {@link #finish} for a
   * reader that stops early and uses what it has read. Any thread; takes no lock, and does not
   * wait.
   *
   * @throws BlockFetchException if an owner may have freed blocks while they were being read
   * @throws IllegalStateException if the fetch is closed
   */
  public void checkIntact() {
    windows.checkIntact();
    checkOpen(); // Behind it: what was released meanwhile was not looked at.
  }

  /**
   * Returns whether there are blocks behind the current one. Does not wait: a block that failed and
   * is asked for again counts until it is handed out. To be called after {@link #next}.
   */
  public boolean hasMore() {
    return !unmet.isEmpty()
        || windows.hasUnopened()
        || windows.hasNext()
        || transfers.hasPending()
        || transfers.isWaiting();
  }

  /** Returns whether the fetch was closed; one volatile load. */
  public boolean isClosed() {
    return state != State.OPEN;
  }

  private boolean isEnded() {
    return reader.ended().getAsBoolean();
  }

  /**
   * Chooses the ways that are known at once. First contact takes some milliseconds, or seconds with
   * an owner that says nothing, and there may be a thousand owners: so they are connected one by
   * one while what is there already is handed out.
   */
  private void plan() {
    for (int left = planned ? 0 : unmet.size(); left > 0 && !isEnded(); left--) {
      final BlockSource source = unmet.remove();
      if (all.paths.connectsFirst(source)) {
        unmet.add(source);
      } else {
        reader.timed(() -> route(source));
      }
    }
    planned = true;
  }

  /** The next owner, and those behind it that others have met in the meantime. */
  private void meetNext() {
    do {
      route(unmet.poll());
    } while (!unmet.isEmpty() && !isEnded() && !all.paths.connectsFirst(unmet.peek()));
  }

  /** Chooses the way of an owner's blocks. May connect to it. */
  private void route(final BlockSource source) {
    final Route route = reader.choose(source);
    final BlockMemory memory = route.memory();
    if (memory == null) {
      transfers.add(source, source.blocks(), route);
    } else {
      windows.add(source, memory);
    }
  }

  private boolean pollMoved() {
    final FetchedBlock arrived = transfers.poll();
    block = arrived;
    if (arrived == null) {
      return false;
    }
    received += arrived.isReceived() ? 1 : 0;
    reader.count(
        arrived.source(), Link.of(arrived.path()), List.of(arrived.block()), arrived.bytes());
    return true;
  }

  private boolean nextInPlace() {
    block = windows.next();
    return block != null;
  }

  /**
   * Releases all blocks that were handed out, the current one too, for a reader that has gathered
   * or copied them.
   *
   * @throws BlockFetchException if an owner may have freed blocks meanwhile
   * @throws IllegalStateException if the fetch is closed
   */
  public void releaseWindows() {
    during(
        () -> {
          pass();
          releasePassed(0);
        });
  }

  /**
   * Has the reader's own resources released with the fetch, before what they were made of.
   *
   * @param ending ends what reads blocks. Run by the thread that releases, and again at the next
   *     {@link #close} if it fails: what was handed out is not released before it has succeeded
   * @param releasing releases the rest. If it fails, blocks are released all the same
   */
  public void releasing(final Runnable ending, final Runnable releasing) {
    reading = ending;
    made = releasing;
  }

  /**
   * Ends all leases and gives all receive buffers back. If another thread is in a step and does not
   * come out soon, that one releases what is held, as soon as it does. Idempotent.
   */
  @Override
  public void close() {
    end(false);
  }

  /**
   * Closes the fetch of a reader that uses what it has read.
   *
   * @throws BlockFetchException if an owner may have freed blocks while they were being read; the
   *     fetch is closed
   */
  public void finish() {
    try {
      windows.checkIntact(); // First, since another thread may release what it holds.
    } finally {
      end(true);
    }
  }

  private void end(final boolean checks) {
    become(State.CLOSING);
    if (!lock.isHeldByCurrentThread() && tryLock()) {
      releaseAll(checks);
    }
  }

  /** Moves on to a state, unless another thread has. */
  private synchronized void become(final State next) {
    if (state.compareTo(next) < 0) {
      state = State.TRANSITIONS.go(state, next, "a fetch");
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

  /** Releases what is held, for the thread that has the lock; unlocks in the end. */
  private void releaseAll(final boolean checks) {
    try {
      if (state == State.CLOSING) {
        try {
          reading.run();
        } catch (final RuntimeException | Error e) {
          releaseOthers(e);
          throw e;
        }
        become(State.RELEASED);
        releaseBlocks(checks);
      }
    } finally {
      lock.unlock();
    }
  }

  /** Something may still read what was handed out: only what was not is released. */
  private void releaseOthers(final Throwable failure) {
    try {
      transfers.close();
    } catch (final RuntimeException e) {
      failure.addSuppressed(e);
    }
  }

  /** Each of them, whatever fails: the first failure is thrown, with the others. */
  private void releaseBlocks(final boolean checks) {
    final List<AutoCloseable> held = new ArrayList<>();
    if (checks) {
      held.add(windows::checkIntact);
    }
    held.add(made::run);
    held.add(transfers);
    if (block != null) {
      passed.add(block);
    }
    passed.forEach(each -> held.add(each::releaseMoved));
    held.add(windows);
    try {
      CloseHelper.closeAll(held);
    } finally {
      reading = () -> {}; // Spark keeps what ends with a task, and with it this fetch.
      made = () -> {};
      unmet.clear();
      passed.clear();
      block = null;
    }
  }
}
