package io.zerohop.shuffle.fetch;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Message;
import io.zerohop.device.WaitException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.catalog.AccessTimes;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.route.PathChooser;
import io.zerohop.shuffle.transport.Transport;
import io.zerohop.shuffle.transport.Transport.FallbackTransport;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * All fetches of an executor: what they share, and what is counted of them by link. Metrics,
 * statistics and tests read the counts. Thread safe; owns nothing that has to be closed.
 */
public final class Fetches {
  final Config conf;
  final Duration stagedTimeout;
  final Clock clock;
  final PathChooser paths;
  final ReceiveBudget receiveBudget;
  final AccessTimes accessTimes;
  private final @Nullable Devices devices;
  final Map<BlockPath, Map<ReadSide, Transport>> between;

  private final LongAdder[] blocks = adders();
  private final LongAdder[] bytes = adders();
  private final LongAdder unready = new LongAdder();
  private final LongAdder waitedNanos = new LongAdder();
  private volatile LongConsumer waits = nanos -> {};

  /**
   * Fetches of one executor.
   *
   * @param stagedTimeout longest time in which none of a reader's moved blocks arrives: long, since
   *     the staged transport has limits and retries of its own; this one only ends what would hang
   *     for ever
   * @param devices absent in a process that maps nothing and asks for nothing by UCX
   * @param between what moves blocks between nodes, by path and by who reads them; empty if nothing
   *     does
   */
  public Fetches(
      final Config conf,
      final Duration stagedTimeout,
      final Clock clock,
      final @Nullable Devices devices,
      final PathChooser paths,
      final AccessTimes accessTimes,
      final Map<BlockPath, Map<ReadSide, Transport>> between) {
    this.conf = conf;
    this.stagedTimeout = stagedTimeout;
    this.clock = clock;
    this.devices = devices;
    this.paths = paths;
    this.accessTimes = accessTimes;
    this.between = between;
    this.receiveBudget = new ReceiveBudget(conf.fetch().receiveBuffers(), clock);
  }

  /**
   * Returns fetches of a process that shares no memory, because the native library or the socket
   * folder is not available: all blocks are staged. Needs neither.
   */
  public static Fetches stagedOnly(
      final Config conf, final Duration stagedTimeout, final Clock clock) {
    final PathChooser paths = PathChooser.stagedOnly(conf.paths(), clock);
    return new Fetches(conf, stagedTimeout, clock, null, paths, new AccessTimes(clock), Map.of());
  }

  /**
   * Begins to fetch blocks for one reader, which closes the fetch.
   *
   * @param sources what to fetch; blocks of one source come in order, sources in any
   * @param staged moves what can be had in no other way
   * @param side who reads the blocks; the GPU only where there is one
   * @param cancelled asked often; true ends any wait of this fetch
   */
  public Fetch begin(
      final List<BlockSource> sources,
      final FallbackTransport staged,
      final Listener listener,
      final ReadSide side,
      final BooleanSupplier cancelled) {
    return new Fetch(this, sources, staged, listener, side, cancelled);
  }

  /** The devices of a process that has any. */
  Devices devices() {
    if (devices == null) {
      throw new IllegalStateException("this process shares no memory, and has no devices");
    }
    return devices;
  }

  void count(final Link link, final long moreBlocks, final long moreBytes) {
    blocks[link.ordinal()].add(moreBlocks);
    bytes[link.ordinal()].add(moreBytes);
  }

  void waited(final long nanos) {
    waitedNanos.add(nanos);
    waits.accept(nanos);
  }

  void foundUnready() {
    unready.increment();
  }

  /**
   * Has each wait told from now on, to one who keeps their distribution.
   *
   * @param told is given nanoseconds, by the readers' own threads; must neither wait nor fail
   */
  public void onWait(final LongConsumer told) {
    waits = told;
  }

  /** Blocks and bytes that went one way since the start. */
  public record MovedBlocks(long blocks, long bytes) {}

  /** Returns what was handed out by one path since the start. */
  public MovedBlocks moved(final BlockPath path) {
    long movedBlocks = 0;
    long movedBytes = 0;
    for (final Link link : Link.values()) {
      if (link.path() == path) {
        movedBlocks += blocks[link.ordinal()].sum();
        movedBytes += bytes[link.ordinal()].sum();
      }
    }
    return new MovedBlocks(movedBlocks, movedBytes);
  }

  /** Returns the bytes that were handed out over one link since the start. */
  public long bytes(final Link link) {
    return bytes[link.ordinal()].sum();
  }

  /** Returns the nanoseconds that readers have waited since the start, in sum. */
  public long waitedNanos() {
    return waitedNanos.sum();
  }

  /** Map outputs that readers found before their bytes were there. */
  public long unready() {
    return unready.sum();
  }

  /** Returns the bytes of receive buffers that are reserved now. */
  public long reserved() {
    return receiveBudget.reserved();
  }

  /** Returns the nanoseconds that readers have waited for receive buffers, in sum. */
  public long waitedForBuffersNanos() {
    return receiveBudget.waitedNanos();
  }

  private static LongAdder[] adders() {
    final LongAdder[] adders = new LongAdder[Link.values().length];
    for (int i = 0; i < adders.length; i++) {
      adders[i] = new LongAdder();
    }
    return adders;
  }

  /**
   * Receives the counts of a fetch and its reader's waiting time; called on the reader's thread.
   * What is not overridden does nothing.
   */
  public interface Listener {

    /**
     * Blocks are ready to be read.
     *
     * @param source their owner
     * @param link the way they took
     * @param blocks which; valid during the call only
     * @param bytes their bytes together
     */
    default void fetched(
        final BlockSource source, final Link link, final List<Block> blocks, final long bytes) {}

    /**
     * Blocks have to be staged, because no better path is available. They are told of again when
     * they are ready to be read.
     *
     * @param source their owner
     * @param blocks which; not empty, valid during the call only
     * @param reason why, in words
     */
    default void fellBack(
        final BlockSource source, final List<Block> blocks, final Message reason) {}

    /** The reader waited for this many nanoseconds. */
    default void waited(final long nanos) {}
  }

  /**
   * The budget of receive buffers, shared by all fetches of an executor. Reservations are all or
   * nothing. Thread safe.
   *
   * <p>A fetch waits here only while it holds no reservation, and for a limited time; then it gets
   * what it asked for even if that exceeds the budget. So tasks that read two shuffles at once,
   * each holding memory that the other waits for, get on, and the excess is at most one block a
   * fetch.
   */
  static final class ReceiveBudget {
    private static final long SLICE_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

    private final long limit;
    private final Clock clock;

    @GuardedBy("this")
    private long reserved;

    @GuardedBy("this")
    private long waitedNanos;

    /**
     * @param limit most bytes that may be reserved without waiting
     * @param clock by which patience is measured
     */
    ReceiveBudget(final long limit, final Clock clock) {
      this.limit = limit;
      this.clock = clock;
    }

    /**
     * Reserves if there is room; a request larger than the budget fits when nothing is reserved.
     */
    synchronized boolean tryReserve(final long more) {
      if (reserved != 0 && reserved + more > limit) {
        return false;
      }
      reserved += more;
      return true;
    }

    /**
     * Reserves as soon as there is room, and when the patience is over in any case.
     *
     * @throws WaitException if cancelled; nothing is reserved then
     */
    synchronized void reserve(
        final long more, final Duration patience, final BooleanSupplier cancelled) {
      if (tryReserve(more)) {
        return;
      }
      final long start = clock.nanos();
      try {
        await(more, clock.in(patience), cancelled);
      } finally {
        waitedNanos += clock.since(start);
      }
    }

    @GuardedBy("this")
    private void await(final long more, final long deadline, final BooleanSupplier cancelled) {
      while (!tryReserve(more)) {
        final long left = clock.left(deadline);
        if (left <= 0) {
          reserved += more;
          return;
        }
        if (cancelled.getAsBoolean()) {
          throw new WaitException(
              WaitException.Reason.CANCELLED, "cancelled while waiting for receive buffers");
        }
        try {
          clock.await(this, Math.min(SLICE_NANOS, left));
        } catch (final InterruptedException e) {
          Thread.currentThread().interrupt();
          throw new WaitException(
              WaitException.Reason.CANCELLED, "interrupted while waiting for receive buffers");
        }
      }
    }

    /** Gives a reservation back. */
    synchronized void release(final long less) {
      reserved -= less;
      notifyAll();
    }

    /** Most bytes that may be reserved without waiting. */
    long limit() {
      return limit;
    }

    /** Time that all callers of {@link #reserve} together have waited. */
    synchronized long waitedNanos() {
      return waitedNanos;
    }

    synchronized long reserved() {
      return reserved;
    }
  }
}
