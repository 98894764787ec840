package io.zerohop.shuffle.spill;

import io.zerohop.device.posix.Clock;
import io.zerohop.device.posix.Housekeeping;
import io.zerohop.shuffle.catalog.AccessTimes;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.samenode.OwnMemory;
import java.io.IOException;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Makes room in an executor's pools: moves unused map outputs out in the background, and releases
 * GPU memory on request. Thread safe.
 */
public final class Evictor {
  /**
   * How long the pool in GPU memory takes nothing in after {@link #shrink}, or it would take the
   * same memory again.
   */
  public static final Duration SHRINK_PAUSE = Duration.ofSeconds(5);

  private static final Duration PERIOD = Duration.ofMillis(100);

  private final OwnMemory memory;
  private final Spiller spiller;

  /** Absent without a GPU. */
  private final @Nullable PoolShrinker shrinker;

  /** Absent if map outputs stay. */
  private final Housekeeping.@Nullable Chore moving;

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
    spiller = new Spiller(conf, cold, devices, memory, accessTimes, leases, clock);
    final boolean moves = conf.spill().start() < 1;
    shrinker =
        devices.hasGpu()
            ? new PoolShrinker(memory, moves ? spiller : null, this::hurry, copying, clock)
            : null;
    for (final Pool pool : memory.tiers().all()) {
      pool.onShortage(() -> shortage(pool.tier()));
    }
    moving =
        moves ? housekeeping.everyLong("spiller", PERIOD, spiller::isNeeded, spiller::round) : null;
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
    memory.reclaimer().poll();
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
    return shrinker == null ? 0 : shrinker.shrink(bytes, scope, limit);
  }

  /** An upper bound of what {@link #shrink} could give back now, in bytes. */
  public long shrinkableBytes(final EvictionScope scope) {
    return shrinker == null ? 0 : shrinker.shrinkableBytes(scope);
  }

  /** Bytes of GPU memory that were given back since the start. */
  public long givenBytes() {
    return shrinker == null ? 0 : shrinker.givenBytes();
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
    if (shrinker != null) {
      shrinker.stop();
    }
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
