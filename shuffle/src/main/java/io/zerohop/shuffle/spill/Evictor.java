package io.zerohop.shuffle.spill;

import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.catalog.AccessTimes;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.PoolStats;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.samenode.OwnMemory;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Makes room in an executor's pools: has the spiller move unused map outputs out in the background,
 * and releases GPU memory to the driver when others have run out of it. Then empty segments go at
 * once, those that it lends next, and last those that the spiller empties. Callers take turns.
 * Thread safe; holds no lock of a pool or the catalog while it waits, and takes no GPU memory
 * itself.
 */
public final class Evictor {
  /**
   * How long the pool in GPU memory takes nothing in after {@link #shrink}, or it would take the
   * same memory again.
   */
  public static final Duration SHRINK_PAUSE = Duration.ofSeconds(5);

  private static final Duration PERIOD = Duration.ofMillis(100);

  /** Peers look every 100 ms for segments that are gone; until then their mappings keep memory. */
  private static final Duration PEERS_UNMAP = Duration.ofMillis(250);

  /** The longest wait for lent memory: borrowers look every 100 ms, and copy over the PCI bus. */
  private static final Duration RECALL = Duration.ofMillis(500);

  /** The interval of checks whether readers have released something. */
  static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  /**
   * How often is looked again for outputs whose copies have ended meanwhile: RAPIDS may run out of
   * memory right behind a map task, whose copies end in milliseconds.
   */
  private static final int COPIES_LOOKS = 50;

  private final OwnMemory memory;
  private final Reclaimer reclaimer;
  private final Spiller spiller;
  private final BooleanSupplier copying;
  private final Clock clock;

  /** Absent if map outputs stay. */
  private final Housekeeping.@Nullable Chore moving;

  private final ReentrantLock turn = new ReentrantLock(true);
  private final LongAdder given = new LongAdder();

  /**
   * Time until which waiting is useless, after a whole wait brought nothing; of the request whose
   * turn it is.
   */
  private long vainUntil;

  private boolean vain;

  /** The same of lent memory, whose borrowers may be stopped. */
  private long ignoredUntil;

  private boolean ignored;
  private volatile boolean stopped;

  /**
   * Begins to look after the pools, if map outputs may leave.
   *
   * @param cold takes what leaves host memory, if something does
   * @param memory whose pools have the room made
   * @param leases holds an output of the catalog's, if it was not freed
   * @param copying whether copies of published outputs are under way
   * @param housekeeping does the moving
   * @throws io.zerohop.device.ZerohopException (FALLBACK) if there is no thread
   */
  public Evictor(
      final Config conf,
      final @Nullable ColdStorage cold,
      final Devices devices,
      final OwnMemory memory,
      final AccessTimes accessTimes,
      final Function<OwnOutput, @Nullable MapOutputLease> leases,
      final BooleanSupplier copying,
      final Housekeeping housekeeping,
      final Clock clock) {
    this.memory = memory;
    this.reclaimer = memory.reclaimer();
    this.copying = copying;
    this.clock = clock;
    spiller = new Spiller(conf, cold, devices, memory, accessTimes, leases, clock);
    for (final Pool pool : memory.tiers().all()) {
      pool.onShortage(() -> shortage(pool.tier()));
    }
    moving =
        conf.spill().start() < 1
            ? housekeeping.everyLong("spiller", PERIOD, spiller::isNeeded, spiller::round)
            : null;
  }

  /**
   * Sets what is called when a pool is nearly full and holds shuffles that nobody uses, at most
   * four times a second: it has {@link AccessTimes#finished} told, and does not wait.
   */
  public void onPressure(final Runnable question) {
    spiller.onPressure(question);
  }

  /** Has the spiller look again soon, as when a lender wants its memory back. Does not wait. */
  public void hurry() {
    if (moving != null) {
      moving.hurry();
    }
  }

  /** A pool refused an allocation: what readers have passed is freed, and more is on its way. */
  private void shortage(final Tier tier) {
    reclaimer.poll();
    spiller.shortage(tier);
    hurry();
  }

  /**
   * Gives GPU memory back that others have run out of: what is empty, and then what map outputs
   * leave that move to host memory.
   *
   * @param bytes that are wanted; whole segments go, and all that are empty, so it may be more
   * @param limit how long to wait for others' turns, for map outputs to move and for readers to let
   *     go of them; zero if only what is empty is to go
   * @return bytes that were given back during this call; 0 without a GPU
   */
  public long shrink(final long bytes, final EvictionScope scope, final Duration limit) {
    final Pool pool = memory.tiers().device();
    if (pool == null) {
      return 0;
    }
    final long deadline = clock.in(limit);
    try {
      if (!clock.tryLock(turn, limit)) {
        return 0;
      }
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
      return 0;
    }
    try {
      return stopped ? 0 : shrink(pool, bytes, scope, limit, deadline);
    } finally {
      turn.unlock();
    }
  }

  private long shrink(
      final Pool pool,
      final long bytes,
      final EvictionScope scope,
      final Duration limit,
      final long deadline) {
    final long before = pool.stats().returnedBytes();
    pool.pause(limit.plus(SHRINK_PAUSE));
    try {
      final Eviction eviction = new Eviction(scope, () -> bytes - giveBack(pool, before), clock);
      if (eviction.missing() > 0) {
        recall(pool, eviction, deadline);
      }
      if (eviction.missing() > 0 && moving != null && !isVain()) {
        evict(eviction, deadline);
      }
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt(); // What there is by now has to do.
    } finally {
      pool.pause(SHRINK_PAUSE);
    }
    final long returned = giveBack(pool, before);
    if (returned > 0) {
      vain = false;
      given.add(returned);
      letPeersUnmap();
    }
    return returned;
  }

  /** An upper bound of what {@link #shrink} could give back now, in bytes. */
  public long shrinkableBytes(final EvictionScope scope) {
    final Pool pool = memory.tiers().device();
    if (pool == null) {
      return 0;
    }
    final PoolStats stats = pool.stats();
    if (moving != null && scope == EvictionScope.ALL) {
      return stats.reservedBytes();
    }
    final long cold = moving == null ? 0 : spiller.coldDeviceBytes();
    return stats.emptyBytes() + stats.loans().lentBytes() + cold;
  }

  /** Gives back what is empty; returns how much has been since the pool had given so much. */
  private long giveBack(final Pool pool, final long before) {
    reclaimer.poll();
    pool.closeEmpty();
    return pool.stats().returnedBytes() - before;
  }

  /** What is lent goes before own blocks do: others have it as long as it is not needed here. */
  private void recall(final Pool pool, final Eviction eviction, final long deadline)
      throws InterruptedException {
    pool.lent().recall(eviction.missing());
    if (ignored && !clock.isOver(ignoredUntil)) {
      return;
    }
    ignored = false;
    final long end = clock.in(RECALL);
    while (!stopped && pool.lent().bytes() > 0 && eviction.missing() > 0) {
      final long left = Math.min(clock.left(end), clock.left(deadline));
      if (left <= 0) {
        ignored = clock.isOver(end);
        ignoredUntil = clock.in(SHRINK_PAUSE);
        return;
      }
      eviction.await(Math.min(left, LOOK_NANOS));
    }
  }

  private void evict(final Eviction eviction, final long deadline) throws InterruptedException {
    // Before it is looked: copies that end behind that are found by another look.
    boolean copies = copying.getAsBoolean();
    int looks = 0;
    spiller.ask(eviction);
    hurry();
    try {
      while (!stopped && eviction.missing() > 0) {
        // Uncommitted outputs and own leases may hold the rest, for who knows how long.
        if (eviction.isExhausted() && reclaimer.waitingBytes(Region::isOnOwnGpu) == 0) {
          if (!copies || looks++ == COPIES_LOOKS) {
            return;
          }
          eviction.await(Math.min(clock.left(deadline), LOOK_NANOS));
          copies = copying.getAsBoolean();
          eviction.again();
          spiller.ask(eviction);
          hurry();
        }
        final long left = clock.left(deadline);
        if (left <= 0) {
          // Its readers may wait for the same memory as whoever asks.
          vain = true;
          vainUntil = clock.in(SHRINK_PAUSE);
          return;
        }
        eviction.await(Math.min(left, LOOK_NANOS));
      }
    } finally {
      eviction.end();
    }
  }

  private boolean isVain() {
    vain = vain && !clock.isOver(vainUntil);
    return vain;
  }

  private void letPeersUnmap() {
    if (memory.isShared()) {
      try {
        clock.sleep(PEERS_UNMAP);
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Bytes of GPU memory that were given back since the start. */
  public long givenBytes() {
    return given.sum();
  }

  /** Returns the outputs moved from GPU memory to host memory. */
  public SpilledOutputs movedToHost() {
    return spiller.movedToHost();
  }

  /** Returns the outputs moved from host memory to files. */
  public SpilledOutputs movedToFiles() {
    return spiller.movedToFiles();
  }

  /** Nothing is moved or given back any more; what is under way may still be. */
  public void stop() {
    stopped = true;
    spiller.stop();
  }

  /** Ends what is being moved, for which it waits a limited time. Idempotent. */
  public void close() {
    if (moving != null) {
      moving.close();
    }
  }

  /** Returns whether something is being moved. */
  public boolean isBusy() {
    return moving != null && moving.isBusy();
  }

  /**
   * Map outputs that left a pool since the node's start.
   *
   * @param outputs map outputs
   * @param bytes their bytes
   * @param finishedBytes those of them that belonged to finished queries
   * @param nanos the time that moving them took, in nanoseconds
   * @param failures how often one could not be moved
   */
  public record SpilledOutputs(
      long outputs, long bytes, long finishedBytes, long nanos, long failures) {
    static final SpilledOutputs NONE = new SpilledOutputs(0, 0, 0, 0, 0);

    SpilledOutputs and(final long moreBytes, final boolean finished, final long moreNanos) {
      return new SpilledOutputs(
          outputs + 1,
          bytes + moreBytes,
          finishedBytes + (finished ? moreBytes : 0),
          nanos + moreNanos,
          failures);
    }

    SpilledOutputs andFailure() {
      return new SpilledOutputs(outputs, bytes, finishedBytes, nanos, failures + 1);
    }
  }

  /** The extent to which a pool releases memory. Segments that hold nothing go in any case. */
  public enum EvictionScope {
    /** Map outputs of shuffles that nobody uses leave it, as they would to make room for others. */
    COLD,
    /** Map outputs that are in use leave it, too, after the cold ones. */
    ALL
  }

  /** Storage for map outputs that have to leave memory. Thread safe. */
  public interface ColdStorage {

    /**
     * Keeps a map output, so that its owner can serve it from here. May take long. Damage must not
     * get a new checksum, by which it would look right: the checksums that the output has go along,
     * or it is verified on the way.
     *
     * @param output whose bytes stay readable until this returns
     * @throws io.zerohop.shuffle.block.DamagedOutputException if it is seen not to be as it was
     *     written; nothing is kept then
     * @throws IOException if there is no room, or nothing can be written; nothing is kept then
     */
    void store(int shuffleId, long mapId, MapOutputLease output) throws IOException;

    /** Forgets a map output whose shuffle ended while it was being stored. */
    void drop(int shuffleId, long mapId);
  }

  /**
   * A request for GPU memory that a caller waits for. One thread waits, the spiller's moves map
   * outputs meanwhile; either may end it. Thread safe.
   */
  static final class Eviction {
    private final EvictionScope scope;
    private final LongSupplier missing;
    private final Clock clock;
    private boolean over;
    private boolean exhausted;

    /**
     * @param missing bytes that are still to be given back; looks for what can be, and gives it
     *     back
     * @param clock by which who waits looks again
     */
    Eviction(final EvictionScope scope, final LongSupplier missing, final Clock clock) {
      this.scope = scope;
      this.missing = missing;
      this.clock = clock;
    }

    EvictionScope scope() {
      return scope;
    }

    long missing() {
      return missing.getAsLong();
    }

    /** Nobody waits for it any more. */
    synchronized void end() {
      over = true;
      notifyAll();
    }

    /** Is to be looked at once more. */
    synchronized void again() {
      exhausted = false;
    }

    /** Nothing is left that could be moved. */
    synchronized void exhaust() {
      exhausted = true;
      notifyAll();
    }

    synchronized boolean isOver() {
      return over;
    }

    synchronized boolean isExhausted() {
      return exhausted;
    }

    /** Tells who waits that some bytes have moved. */
    synchronized void moved() {
      notifyAll();
    }

    /** Waits for news for at most so long. */
    synchronized void await(final long nanos) throws InterruptedException {
      if (!over && nanos > 0) {
        clock.await(this, nanos);
      }
    }
  }
}
