package io.zerohop.shuffle.fetch;

import io.zerohop.device.WaitException;
import io.zerohop.shuffle.Block;
import io.zerohop.shuffle.transport.StagedTransport;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * The staged blocks of one fetcher: what is still to be asked for, what is under way, and what has
 * arrived. A window is asked for only once landing memory is reserved for all of it. All but the
 * sinks, which any thread may call, is called by one thread at a time.
 */
final class StagedQueue implements AutoCloseable {
  private static final long SLICE_MILLIS = 10;
  static final Duration LANDING_PATIENCE = Duration.ofSeconds(2);

  private final FetchContext context;
  private final StagedTransport transport;
  private final Deque<Request> pending = new ArrayDeque<>();

  // Guarded by this queue's monitor.
  private final Map<Block, BlockSource> outstanding = new HashMap<>();
  private final Deque<Arrival> arrivals = new ArrayDeque<>();
  private boolean closed;

  private long reserved;
  private Arrival current;

  StagedQueue(final FetchContext context, final StagedTransport transport) {
    this.context = context;
    this.transport = transport;
  }

  /** Adds blocks that will be asked for when there is landing memory. */
  void add(final BlockSource source, final List<Block> blocks) {
    if (!blocks.isEmpty()) {
      pending.add(new Request(source, new ArrayDeque<>(blocks)));
    }
  }

  /** Whether blocks wait to be asked for. */
  boolean hasPending() {
    return !pending.isEmpty();
  }

  /** Whether blocks were asked for and are neither there nor failed. */
  boolean isWaiting() {
    synchronized (this) {
      return !outstanding.isEmpty() || !arrivals.isEmpty();
    }
  }

  /** Asks for as many windows as there is landing memory for; does not wait. */
  void start() {
    while (!pending.isEmpty()) {
      final long cap = Math.min(context.config().windowBytes(), context.landing().limit());
      // Half of the cap must be free, so that windows do not shrink to single blocks.
      if (reserved > cap / 2) {
        return;
      }
      final List<Block> window = window(cap - reserved);
      final long bytes = bytes(window);
      if (window.isEmpty() || !context.landing().tryReserve(bytes)) {
        return;
      }
      send(window, bytes);
    }
  }

  /**
   * Waits for landing memory for one block and asks for it. Called only when nothing is reserved by
   * this fetcher, so nobody waits for what the waiting one holds.
   */
  void startOne(final BooleanSupplier cancelled) {
    final List<Block> window = List.of(pending.peek().blocks.peek());
    final long bytes = bytes(window);
    context.landing().reserve(bytes, LANDING_PATIENCE, cancelled);
    send(window, bytes);
  }

  /** The next blocks of the first request that fit; at least one if nothing is reserved. */
  private List<Block> window(final long room) {
    final List<Block> window = new ArrayList<>();
    long bytes = 0;
    for (final Block block : pending.peek().blocks) {
      final boolean fits = bytes + block.bytes() <= room || (reserved == 0 && window.isEmpty());
      if (!fits || window.size() == context.config().windowBlocks()) {
        break;
      }
      window.add(block);
      bytes += block.bytes();
    }
    return window;
  }

  private void send(final List<Block> window, final long bytes) {
    final Request request = pending.peek();
    for (int i = 0; i < window.size(); i++) {
      request.blocks.poll();
    }
    if (request.blocks.isEmpty()) {
      pending.poll();
    }
    reserved += bytes;
    synchronized (this) {
      window.forEach(block -> outstanding.put(block, request.source));
    }
    try {
      transport.fetch(request.source, window, new WindowSink());
    } catch (final RuntimeException e) {
      window.forEach(block -> land(block, null, e));
    }
  }

  /**
   * Makes the next arrived block the current one, if there is any.
   *
   * @return null if none has arrived
   * @throws BlockFetchException if a block failed
   */
  FetchedBlock poll() {
    final Arrival arrival;
    synchronized (this) {
      arrival = arrivals.poll();
    }
    if (arrival == null) {
      return null;
    }
    if (arrival.payload == null) {
      release(arrival.block);
      throw failed(arrival.source, arrival.block, "it could not be fetched", arrival.cause);
    }
    current = arrival;
    return new StagedBlock(arrival.source, arrival.block, arrival.payload);
  }

  /**
   * Waits until a block has arrived or failed. The clock starts with each call, that is, anew after
   * each arrival: a transfer may be slow as long as it gets on.
   *
   * @throws BlockFetchException if none did within the staged limit
   * @throws WaitException if cancelled
   */
  void await(final BooleanSupplier cancelled) {
    final Duration limit = context.config().stagedLimit();
    final long deadline = System.nanoTime() + limit.toNanos();
    for (; ; ) {
      if (cancelled.getAsBoolean()) {
        throw new WaitException(
            WaitException.Reason.CANCELLED, "cancelled while waiting for staged blocks");
      }
      synchronized (this) {
        if (!arrivals.isEmpty()) {
          return;
        }
        final long left = deadline - System.nanoTime();
        if (left <= 0) {
          final Map.Entry<Block, BlockSource> first = outstanding.entrySet().iterator().next();
          throw failed(
              first.getValue(),
              first.getKey(),
              "it did not arrive, and no other staged block did for " + limit.toSeconds() + " s",
              null);
        }
        try {
          wait(Math.max(1, Math.min(SLICE_MILLIS, TimeUnit.NANOSECONDS.toMillis(left))));
        } catch (final InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new WaitException(
              WaitException.Reason.CANCELLED, "interrupted while waiting for staged blocks");
        }
      }
    }
  }

  /** Releases the block that was handed out last. */
  void releaseCurrent() {
    if (current != null) {
      final Arrival arrival = current;
      current = null;
      release(arrival.block);
      arrival.payload.release();
    }
  }

  private void release(final Block block) {
    reserved -= block.bytes();
    context.landing().release(block.bytes());
  }

  private void land(
      final Block block, final StagedTransport.StagedPayload payload, final Throwable cause) {
    synchronized (this) {
      final BlockSource source = outstanding.remove(block);
      if (source != null && !closed) {
        arrivals.add(new Arrival(source, block, payload, cause));
        notifyAll();
        return;
      }
    }
    if (payload != null) {
      payload.release(); // Too late, or not asked for: nobody will read it.
    }
  }

  /** Releases everything; what arrives later is released as it comes. Idempotent. */
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
      releaseCurrent();
      for (final Arrival arrival : left) {
        if (arrival.payload != null) {
          arrival.payload.release();
        }
      }
    } finally {
      pending.clear();
      context.landing().release(reserved);
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
      final BlockSource source, final Block block, final String what, final Throwable cause) {
    return new BlockFetchException(
        block,
        source,
        block
            + " of executor "
            + source.executorId()
            + " (staged): "
            + what
            + (cause == null ? "" : ": " + cause),
        cause);
  }

  private record Request(BlockSource source, Deque<Block> blocks) {}

  private record Arrival(
      BlockSource source, Block block, StagedTransport.StagedPayload payload, Throwable cause) {}

  private final class WindowSink implements StagedTransport.Sink {
    @Override
    public void arrived(final Block block, final StagedTransport.StagedPayload payload) {
      land(block, payload, null);
    }

    @Override
    public void failed(final Block block, final Throwable cause) {
      land(block, null, cause);
    }
  }
}
