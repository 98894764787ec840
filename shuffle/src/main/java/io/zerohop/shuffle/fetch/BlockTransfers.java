package io.zerohop.shuffle.fetch;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.LogCode;
import io.zerohop.device.Message;
import io.zerohop.device.WaitException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.route.PathChooser.Route;
import io.zerohop.shuffle.transport.Transport;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.agrona.CloseHelper;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of one fetch that are moved, staged or from another node: those still to be requested,
 * those under way, and those that have arrived. A window is asked for only once receive buffers are
 * reserved for all of it. All but the sinks, which any thread may call, is called by one thread at
 * a time.
 *
 * <p>Whoever takes a block releases it. The reservation ends before that, with the next block: the
 * memory that a block lies in is shared by what arrived with it, and is freed with the last of
 * that, so a window for each fetch, or a batch on the GPU, is not counted.
 */
final class BlockTransfers implements AutoCloseable {
  private static final long SLICE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);
  static final Duration RESERVE_PATIENCE = Duration.ofSeconds(2);

  /**
   * Maximum windows of one reader that are requested or not all handed out; those that a GPU's
   * reader keeps after that do not count. Each takes memory at both ends whatever is in it, so a
   * thousand owners with a few bytes each must not be asked all at once.
   */
  static final int MAX_WINDOWS = 64;

  private final Reader reader;
  private final Fetches all;
  private final Map<BlockPath, Transport> transports;
  private final Rerouter rerouter;
  private final Deque<Request> pending = new ArrayDeque<>();

  @GuardedBy("this")
  private final Map<Block, Batch> outstanding = new HashMap<>();

  @GuardedBy("this")
  private final Deque<Arrival> arrivals = new ArrayDeque<>();

  @GuardedBy("this")
  private boolean closed;

  private long reserved;

  /** Windows with a block that was not handed out or is the current one. */
  private int windows;

  /** The block that was handed out last, until its reservation ends. */
  private @Nullable Arrival current;

  /** Decides on the next path after a block could not be read from another node's memory. */
  @FunctionalInterface
  interface Rerouter {

    /**
     * The path to try next.
     *
     * @param attempts how often this block failed before
     * @throws BlockFetchException if its owner is dead, or there is no other
     */
    BlockPath again(BlockSource source, Block block, Throwable cause, int attempts);
  }

  /**
   * Transfers to one reader.
   *
   * @param transports by the path that they are
   */
  BlockTransfers(
      final Reader reader, final Map<BlockPath, Transport> transports, final Rerouter rerouter) {
    this.reader = reader;
    this.all = reader.all();
    this.transports = transports;
    this.rerouter = rerouter;
  }

  /** Adds blocks that will be asked for when there are receive buffers for them. */
  void add(final BlockSource source, final List<Block> blocks, final Route by) {
    if (blocks.isEmpty()) {
      return;
    }
    final BlockPath path = by.path();
    final Message whyStaged = by.reason();
    if (whyStaged != null) {
      reader.listener().fellBack(source, blocks, whyStaged);
    }
    final Request last = pending.peekLast();
    if (last != null && last.isFor(source, path, 0)) {
      last.blocks.addAll(blocks);
    } else {
      pending.add(new Request(source, path, 0, new ArrayDeque<>(blocks)));
    }
  }

  /** Returns whether blocks wait to be asked for. */
  boolean hasPending() {
    return !pending.isEmpty();
  }

  /** Returns whether blocks were asked for and are neither there nor failed. */
  boolean isWaiting() {
    synchronized (this) {
      return !outstanding.isEmpty() || !arrivals.isEmpty();
    }
  }

  /**
   * Asks for as many windows as there are receive buffers for. Waits only as a transport does.
   *
   * @return whether there was one
   */
  boolean start() {
    boolean isAsked = false;
    while (!pending.isEmpty()) {
      final long cap = Math.min(all.conf.fetch().windowSize(), all.receiveBudget.limit());
      // Half of the cap must be free, so that windows do not shrink to single blocks.
      if (reserved > cap / 2 || windows >= MAX_WINDOWS) {
        break;
      }
      final List<Block> window = window(cap - reserved);
      final long bytes = bytes(window);
      if (window.isEmpty() || !all.receiveBudget.tryReserve(bytes)) {
        break;
      }
      send(window, bytes);
      isAsked = true;
    }
    return isAsked;
  }

  /**
   * Waits for a receive buffer for one block and asks for it. Called only when nothing is reserved
   * by this fetch, so nobody waits for what the waiting one holds.
   */
  void startOne() {
    final List<Block> window = List.of(pending.peek().blocks.peek());
    final long bytes = bytes(window);
    all.receiveBudget.reserve(bytes, RESERVE_PATIENCE, reader.ended());
    send(window, bytes);
  }

  /** The next blocks of the first request that fit; at least one if nothing is reserved. */
  private List<Block> window(final long room) {
    final List<Block> window = new ArrayList<>();
    long bytes = 0;
    for (final Block block : pending.peek().blocks) {
      final boolean fits = bytes + block.bytes() <= room || (reserved == 0 && window.isEmpty());
      if (!fits || window.size() == all.conf.fetch().windowBlocks()) {
        break;
      }
      window.add(block);
      bytes += block.bytes();
    }
    return window;
  }

  private void send(final List<Block> blocks, final long bytes) {
    final Request request = pending.peek();
    for (int i = 0; i < blocks.size(); i++) {
      request.blocks.poll();
    }
    if (request.blocks.isEmpty()) {
      pending.poll();
    }
    reserved += bytes;
    windows++;
    final Batch window = new Batch(request, blocks.size());
    synchronized (this) {
      blocks.forEach(block -> outstanding.put(block, window));
    }
    try {
      Objects.requireNonNull(transports.get(request.path), "no transport of this path")
          .fetch(request.source, blocks, new BatchSink());
    } catch (final RuntimeException e) {
      blocks.forEach(block -> arrive(block, null, e));
    }
  }

  /**
   * Hands the next arrived block out, if there is any. The caller releases it.
   *
   * @return absent if none has arrived, but such as are asked for again
   * @throws BlockFetchException if a block failed
   */
  @Nullable FetchedBlock poll() {
    Arrival arrival = next();
    while (arrival != null) {
      final Transport.Payload payload = arrival.payload;
      if (payload != null) {
        return handOut(arrival, payload);
      }
      unreserve(arrival);
      askAgain(arrival);
      arrival = next();
    }
    return null;
  }

  private FetchedBlock handOut(final Arrival arrival, final Transport.Payload payload) {
    current = arrival;
    boolean handedOut = false;
    try {
      final FetchedBlock block = checked(arrival, payload);
      handedOut = true;
      return block;
    } finally {
      if (!handedOut) {
        payload.release();
      }
    }
  }

  private FetchedBlock checked(final Arrival arrival, final Transport.Payload payload) {
    final Request request = arrival.batch.request;
    if (payload.bytes() == 0) {
      // Nobody asks for a block without bytes, so its rows are lost, as Spark's own reader says,
      // too.
      throw failed(
          ShuffleCode.ARRIVED_EMPTY,
          request,
          arrival.block,
          "a block arrived without any bytes",
          null);
    }
    return new FetchedBlock(reader, request.source, arrival.block, request.path, payload)
        .verified();
  }

  private synchronized @Nullable Arrival next() {
    return arrivals.poll();
  }

  private void askAgain(final Arrival failed) {
    final Request request = failed.batch.request;
    if (request.path == BlockPath.STAGED) {
      throw failed(
          ShuffleCode.FETCH_FAILED,
          request,
          failed.block,
          "a block could not be fetched",
          failed.cause);
    }
    final Throwable cause = Objects.requireNonNull(failed.cause, "a block failed without a cause");
    final BlockPath path = rerouter.again(request.source, failed.block, cause, request.attempts);
    // First in line: its owner was just connected anew, and would be idle again at the end of it.
    final Request first = pending.peekFirst();
    if (first != null && first.isFor(request.source, path, request.attempts + 1)) {
      first.blocks.add(failed.block);
    } else {
      pending.addFirst(
          new Request(
              request.source, path, request.attempts + 1, new ArrayDeque<>(List.of(failed.block))));
    }
  }

  /**
   * Waits until a block has arrived or failed. The clock starts with each call, that is, anew after
   * each arrival: a transfer may be slow as long as it gets on.
   *
   * @throws BlockFetchException if none did within the staged limit
   * @throws WaitException if cancelled
   */
  void await() {
    final Duration limit = all.stagedTimeout;
    final Clock clock = all.clock;
    final long deadline = clock.in(limit);
    for (; ; ) {
      if (reader.ended().getAsBoolean()) {
        throw new WaitException(
            WaitException.Reason.CANCELLED, "cancelled while waiting for staged blocks");
      }
      synchronized (this) {
        if (!arrivals.isEmpty()) {
          return;
        }
        final long left = clock.left(deadline);
        if (left <= 0) {
          final Map.Entry<Block, Batch> first = outstanding.entrySet().iterator().next();
          throw failed(
              ShuffleCode.NOT_ARRIVED,
              first.getValue().request,
              first.getKey(),
              "a block did not arrive, and no other staged block did for "
                  + limit.toSeconds()
                  + " s",
              null);
        }
        try {
          clock.await(this, Math.min(SLICE_NANOS, left));
        } catch (final InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new WaitException(
              WaitException.Reason.CANCELLED, "interrupted while waiting for staged blocks");
        }
      }
    }
  }

  /** Ends the reservation of the block that was handed out last. */
  void endReservation() {
    if (current != null) {
      unreserve(current);
      current = null;
    }
  }

  /** Returns whether the next block is there already. */
  boolean hasArrived() {
    synchronized (this) {
      return !arrivals.isEmpty();
    }
  }

  private void unreserve(final Arrival arrival) {
    final long bytes = arrival.block.bytes();
    reserved -= bytes;
    all.receiveBudget.release(bytes);
    arrival.batch.left--;
    if (arrival.batch.left == 0) {
      windows--;
    }
  }

  private void arrive(
      final Block block,
      final Transport.@Nullable Payload payload,
      final @Nullable Throwable cause) {
    synchronized (this) {
      final Batch window = outstanding.remove(block);
      if (window != null && !closed) {
        arrivals.add(new Arrival(window, block, payload, cause));
        notifyAll();
        return;
      }
    }
    if (payload != null) {
      payload.release(); // Too late, or not asked for: nobody will read it.
    }
  }

  /**
   * Releases all that was not handed out, and ends all reservations; what arrives later is released
   * as it comes. Idempotent.
   */
  @Override
  public void close() {
    final List<Arrival> left;
    synchronized (this) {
      closed = true;
      left = new ArrayList<>(arrivals);
      arrivals.clear();
      outstanding.clear();
    }
    try {
      CloseHelper.closeAll(left);
    } finally {
      pending.clear();
      all.receiveBudget.release(reserved);
      reserved = 0;
    }
  }

  private static long bytes(final List<Block> blocks) {
    long bytes = 0;
    for (final Block block : blocks) {
      bytes += block.bytes();
    }
    return bytes;
  }

  private static BlockFetchException failed(
      final LogCode code,
      final Request request,
      final Block block,
      final String what,
      final @Nullable Throwable cause) {
    return BlockFetchException.of(block, request.source, request.path, code.says(what), cause);
  }

  /**
   * Blocks of one owner that go one way.
   *
   * @param attempts how often they failed before
   */
  private record Request(BlockSource source, BlockPath path, int attempts, Deque<Block> blocks) {
    boolean isFor(final BlockSource owner, final BlockPath way, final int tries) {
      return source == owner && path == way && attempts == tries;
    }
  }

  /** Blocks that were asked for together. */
  private static final class Batch {
    private final Request request;

    /** Blocks that are not released. For the reader's thread. */
    private int left;

    Batch(final Request request, final int blocks) {
      this.request = request;
      this.left = blocks;
    }
  }

  /** A block that has arrived, with its bytes, or failed, with the cause. */
  private record Arrival(
      Batch batch, Block block, Transport.@Nullable Payload payload, @Nullable Throwable cause)
      implements AutoCloseable {
    @Override
    public void close() {
      if (payload != null) {
        payload.release();
      }
    }
  }

  private final class BatchSink implements Transport.Sink {
    @Override
    public void arrived(final Block block, final Transport.Payload payload) {
      arrive(block, payload, null);
    }

    @Override
    public void failed(final Block block, final Throwable cause) {
      arrive(block, null, cause);
    }

    @Override
    public void failed(final Collection<Block> blocks, final Throwable cause) {
      synchronized (BlockTransfers.this) { // So that the reader finds all of them.
        blocks.forEach(block -> failed(block, cause));
      }
    }
  }
}
