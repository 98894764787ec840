package io.zerohop.shuffle.spill;

import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.DamagedOutputException;
import io.zerohop.shuffle.catalog.AccessTimes;
import io.zerohop.shuffle.catalog.Catalog;
import io.zerohop.shuffle.catalog.Catalog.OwnOutput;
import io.zerohop.shuffle.catalog.MapOutputLease;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.PoolFullException;
import io.zerohop.shuffle.pool.PoolStats;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.pool.Tiers;
import io.zerohop.shuffle.spill.Evictor.ColdStorage;
import io.zerohop.shuffle.spill.Evictor.Eviction;
import io.zerohop.shuffle.spill.Evictor.EvictionScope;
import io.zerohop.shuffle.spill.Evictor.SpilledOutputs;
import io.zerohop.shuffle.transport.samenode.OwnMemory;
import java.time.Duration;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import java.util.function.IntFunction;
import java.util.function.LongConsumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Moves map outputs of unused shuffles one tier down when a pool is nearly full: those of finished
 * queries first and at once, then the coldest shuffle. Whole map outputs go, and never while a lock
 * is held; readers find the old place or the new one. A shuffle that is in use stays where it is:
 * what finds no room then goes down as it is written, which costs as much and takes nothing from
 * those who read.
 *
 * <p>Only when others run out of GPU memory does it move what is in use, see {@link
 * Evictor#shrink}, and when a lender wants its memory back.
 *
 * <p>{@link #round} belongs to one thread at a time; everything else may be called by any.
 */
final class Spiller {
  private static final Logger LOG = LoggerFactory.getLogger(Spiller.class);

  /** A round goes on until so much less of a pool is used than made it begin. */
  private static final double RELIEF = 0.2;

  private static final Duration STORAGE_PAUSE = Duration.ofSeconds(10);

  /** The shortest time between two questions which queries have ended. */
  private static final Duration ASK_PAUSE = Duration.ofMillis(250);

  private final Config.Spill conf;
  private final @Nullable ColdStorage cold;
  private final Clock clock;
  private final Tiers tiers;
  private final Catalog catalog;
  private final Reclaimer reclaimer;
  private final AccessTimes accessTimes;
  private final Function<OwnOutput, @Nullable MapOutputLease> leases;
  private final ToHost toHost;

  /** What has moved, changed by the round. */
  private volatile SpilledOutputs movedToHost = SpilledOutputs.NONE;

  private volatile SpilledOutputs movedToFiles = SpilledOutputs.NONE;

  /** Outputs that are damaged, or could not be copied; they stay, and are not tried again. */
  private final Set<OwnOutput> immovable = new HashSet<>();

  /** Pools that have refused an allocation. */
  private final Set<Tier> shortOf = ConcurrentHashMap.newKeySet();

  private volatile boolean stopped;

  /** What somebody waits for, if anybody does. */
  private final AtomicReference<@Nullable Eviction> asked = new AtomicReference<>();

  /** Has somebody tell which shuffles are finished; does not wait. */
  private volatile Runnable question = () -> {};

  private long askAt;
  private boolean evicting;
  private long storagePausedUntil;

  /**
   * @param cold takes what leaves host memory, if something does
   * @param leases holds an output of the catalog's, if it was not freed
   */
  Spiller(
      final Config conf,
      final @Nullable ColdStorage cold,
      final Devices devices,
      final OwnMemory memory,
      final AccessTimes accessTimes,
      final Function<OwnOutput, @Nullable MapOutputLease> leases,
      final Clock clock) {
    this.conf = conf.spill();
    this.cold = cold;
    this.clock = clock;
    this.tiers = memory.tiers();
    this.catalog = memory.index();
    this.reclaimer = memory.reclaimer();
    this.accessTimes = accessTimes;
    this.leases = leases;
    this.toHost = new ToHost(devices, tiers, catalog, conf.device().timeout());
    this.askAt = clock.nanos();
    this.storagePausedUntil = clock.nanos();
  }

  /** Sets who tells {@link AccessTimes#finished}; asked when there is no room, without waiting. */
  void onPressure(final Runnable value) {
    question = value;
  }

  /** Notes that a pool has refused an allocation. Does not wait. */
  void shortage(final Tier tier) {
    shortOf.add(tier);
  }

  /** Has the next round move map outputs out of GPU memory. Does not wait. */
  void ask(final Eviction eviction) {
    asked.set(eviction);
  }

  /** What is in use is not asked about; an answer counts from the next round on. */
  private void askForFinished() {
    if (clock.isOver(askAt)
        && catalog.shuffles().stream()
            .filter(id -> !accessTimes.isFinished(id))
            .anyMatch(id -> accessTimes.idleNanos(id) >= ASK_PAUSE.toNanos())) {
      askAt = clock.in(ASK_PAUSE);
      question.run();
    }
  }

  /** Bytes in GPU memory of shuffles that nobody uses. */
  long coldDeviceBytes() {
    return inOrder(EvictionScope.COLD).stream()
        .flatMap(shuffleId -> catalog.outputs(shuffleId).stream())
        .mapToLong(output -> bytes(output, Region::isOnOwnGpu))
        .sum();
  }

  /** Makes room where it is needed; returns when there is enough or nothing cold is left. */
  void round() {
    immovable.removeIf(output -> catalog.find(output.shuffleId(), output.mapId()) != output);
    final Eviction eviction = asked.get();
    if (eviction != null) {
      askForFinished();
      evicting = true;
      try {
        moveDown(
            eviction.scope(),
            Tier.DEVICE,
            Region::isOnOwnGpu,
            catalog::outputs,
            () -> !isWanted(eviction),
            bytes -> eviction.moved());
      } finally {
        evicting = false;
        asked.compareAndSet(eviction, null);
        eviction.exhaust();
      }
    }
    final Pool gpuPool = tiers.device();
    if (gpuPool != null) {
      if (gpuPool.hasRecalled()) {
        vacate();
      }
      relieve(Tier.DEVICE, shortOf.remove(Tier.DEVICE));
    }
    relieve(Tier.HOST, shortOf.remove(Tier.HOST));
  }

  /**
   * Returns whether more has to move; waits for readers first if they hold as much as is missing.
   */
  private boolean isWanted(final Eviction eviction) {
    try {
      while (!stopped && !eviction.isOver()) {
        final long missing = eviction.missing();
        if (missing <= 0 || reclaimer.waitingBytes(Region::isOnOwnGpu) < missing) {
          return missing > 0;
        }
        eviction.await(Evictor.LOOK_NANOS);
      }
    } catch (final InterruptedException e) {
      LOG.debug("interrupted; requests for GPU memory get what is free", e);
    }
    return false;
  }

  /** Returns whether a round has something to do. Does not wait. */
  boolean isNeeded() {
    final Pool gpuPool = tiers.device();
    return asked.get() != null
        || !shortOf.isEmpty()
        || gpuPool != null && (gpuPool.hasRecalled() || isFull(gpuPool))
        || isFull(tiers.host());
  }

  private boolean isFull(final Pool pool) {
    final PoolStats stats = pool.stats();
    return usedBytes(pool.tier(), stats) > conf.start() * stats.limitBytes();
  }

  /** Own bytes of a pool that nothing takes away yet. */
  private long usedBytes(final Tier tier, final PoolStats stats) {
    final long waiting =
        reclaimer.waitingBytes(region -> region.tier() == tier && !region.isBorrowed());
    // What is borrowed already is room as well, and costs nobody until it is recalled.
    return stats.ownUsedBytes() - stats.loans().borrowedFreeBytes() - waiting;
  }

  private void relieve(final Tier tier, final boolean isShort) {
    if (!isShort && !isFull(tiers.of(tier))) {
      return;
    }
    askForFinished();
    final PoolStats stats = tiers.of(tier).stats();
    final double goal = Math.max(0, conf.start() - RELIEF) * stats.limitBytes();
    // What was refused may be large, or the free ranges small.
    final double least = isShort ? RELIEF * stats.limitBytes() : 0;
    free(tier, (long) Math.max(usedBytes(tier, stats) - goal, least));
  }

  /** Moves cold outputs out of a tier until so many bytes are on their way out. */
  private void free(final Tier tier, final long wanted) {
    if (tier == Tier.HOST && storage() == null) {
      return;
    }
    final long[] freed = {0};
    moveDown(
        EvictionScope.COLD,
        tier,
        region -> region.tier() == tier,
        shuffleId -> borrowedFirst(catalog.outputs(shuffleId)),
        // Who waits for GPU memory does not wait for files that are only to make room.
        () -> freed[0] >= wanted || stopped || asked.get() != null && !evicting,
        bytes -> freed[0] += bytes);
  }

  /**
   * Moves outputs one place down, shuffle by shuffle, until there is no room below.
   *
   * @param leaves their regions in that tier that are to go
   * @param outputs of a shuffle, in their order
   * @param isEnough ends it, before the next output
   * @param moved hears of each output how many bytes it leaves, if it does
   */
  private void moveDown(
      final EvictionScope scope,
      final Tier tier,
      final Predicate<Region> leaves,
      final IntFunction<List<OwnOutput>> outputs,
      final BooleanSupplier isEnough,
      final LongConsumer moved) {
    for (final int shuffleId : inOrder(scope)) {
      for (final OwnOutput output : outputs.apply(shuffleId)) {
        if (isEnough.getAsBoolean()) {
          return;
        }
        if (isLeaving(shuffleId, scope) && !immovable.contains(output)) {
          try {
            moved.accept(moveDown(output, tier, leaves));
          } catch (final PoolFullException e) {
            LOG.debug("{} stays in GPU memory: {}", output, e.getMessage());
            return; // So will the others.
          }
        }
      }
    }
  }

  private boolean isLeaving(final int shuffleId, final EvictionScope scope) {
    return scope == EvictionScope.ALL
        || accessTimes.isFinished(shuffleId)
        || accessTimes.idleNanos(shuffleId) >= conf.idle().toNanos();
  }

  /**
   * Shuffles in the order in which they go, as they are now: some may be used while they are
   * sorted. Those of finished queries come before all others, and of each the coldest first.
   */
  private List<Integer> inOrder(final EvictionScope scope) {
    return catalog.shuffles().stream()
        .filter(id -> isLeaving(id, scope))
        .map(id -> new Rank(id, accessTimes.isFinished(id), accessTimes.idleNanos(id)))
        .sorted(Comparator.comparing(Rank::finished).thenComparingLong(Rank::idleNanos).reversed())
        .map(Rank::shuffleId)
        .toList();
  }

  private record Rank(int shuffleId, boolean finished, long idleNanos) {}

  /**
   * Bytes that an output leaves in a tier, by moving one place down; 0 if it stays.
   *
   * @param leaves its regions in that tier that are to go
   * @throws PoolFullException if there is no room below
   */
  private long moveDown(final OwnOutput output, final Tier tier, final Predicate<Region> leaves) {
    final long bytes = bytes(output, leaves);
    // A file takes all of an output, and what is mostly in GPU memory would hardly make room here.
    if (bytes == 0
        || tier == Tier.HOST && bytes(output, region -> region.tier() == Tier.DEVICE) > bytes) {
      return 0;
    }
    final boolean finished = isFinished(output); // Readers may come meanwhile.
    try {
      final boolean moved =
          tier == Tier.DEVICE
              ? toHost(output, bytes, leaves, finished)
              : toFile(output, bytes, finished);
      if (moved && !finished) {
        // Of a finished query nothing is said: nobody has to make room for it.
        final int shuffleId = output.shuffleId();
        tiers.overflow().sayMoved(shuffleId, tier, accessTimes.idleSeconds(shuffleId));
      }
      return moved ? bytes : 0;
    } catch (final PoolFullException e) {
      throw e;
    } catch (final ZerohopException e) {
      giveUp(output, tier, e);
      return 0;
    }
  }

  private static long bytes(final OwnOutput output, final Predicate<Region> which) {
    return output.regions().stream().filter(which).mapToLong(Region::bytes).sum();
  }

  /** Borrowed memory is given back sooner. */
  private static List<OwnOutput> borrowedFirst(final List<OwnOutput> outputs) {
    return outputs.stream()
        .sorted(Comparator.comparing(output -> bytes(output, Region::isBorrowed) == 0))
        .toList();
  }

  /**
   * Moves what lies in segments that their lenders want back, used or not: to host memory, or to
   * files if that is full. What is still being written is left to the next round.
   */
  private void vacate() {
    for (final int shuffleId : catalog.shuffles()) {
      for (final OwnOutput output : catalog.outputs(shuffleId)) {
        final long bytes = bytes(output, Region::isRecalled);
        if (stopped || asked.get() != null) {
          return; // Who waits for this GPU's memory comes before another executor.
        }
        if (bytes > 0 && !immovable.contains(output)) {
          try {
            if (!vacate(output, bytes)) {
              return; // So will the others.
            }
          } catch (final ZerohopException e) {
            giveUp(output, Tier.DEVICE, e);
          }
        }
      }
    }
  }

  /** Returns whether there was room for it below. */
  private boolean vacate(final OwnOutput output, final long bytes) {
    try {
      toHost(output, bytes, Region::isRecalled, isFinished(output));
      return true;
    } catch (final PoolFullException e) {
      final boolean moved = toFile(output, bytes, isFinished(output));
      if (!moved) {
        LOG.debug("{} stays in borrowed memory: {}", output, e.getMessage());
      }
      return moved;
    }
  }

  private void giveUp(final OwnOutput output, final Tier from, final ZerohopException cause) {
    if (stopped) {
      return;
    }
    if (from == Tier.DEVICE) {
      movedToHost = movedToHost.andFailure();
    } else {
      movedToFiles = movedToFiles.andFailure();
    }
    immovable.add(output);
    if (cause.category() == ZerohopException.Category.FATAL) {
      stopped = true;
      ShuffleCode.SPILLER_STOPPED
          .says("FATAL: could not move a map output; no map output is moved from now on")
          .at(output.toString())
          .remedy("restart the executor")
          .because(cause)
          .error(LOG, cause);
    } else {
      ShuffleCode.OUTPUT_IMMOVABLE
          .says("could not move a map output, which stays where it is")
          .at(output.toString())
          .because(cause)
          .warn(LOG, cause);
    }
  }

  private boolean toHost(
      final OwnOutput output,
      final long bytes,
      final Predicate<Region> leaves,
      final boolean finished) {
    final long start = clock.nanos();
    boolean moved;
    try {
      moved = toHost.move(output, leaves);
    } catch (final PoolFullException e) {
      free(Tier.HOST, bytes);
      moved = toHost.move(output, leaves);
    }
    if (moved) {
      movedToHost = movedToHost.and(bytes, finished, clock.since(start));
    }
    return moved;
  }

  private boolean toFile(final OwnOutput output, final long bytes, final boolean finished) {
    final ColdStorage storage = storage();
    if (storage == null) {
      return false;
    }
    final long start = clock.nanos();
    try (MapOutputLease lease = leases.apply(output)) {
      if (lease == null) {
        return false;
      }
      storage.store(output.shuffleId(), output.mapId(), lease);
    } catch (final DamagedOutputException e) {
      immovable.add(output);
      ShuffleCode.OUTPUT_DAMAGED.says("a map output was not moved to a file").because(e).error(LOG);
      return false;
    } catch (final ZerohopException e) {
      throw e; // Of this output's memory, not of the storage.
    } catch (final Exception e) {
      // Whatever it is, Scala's undeclared exceptions included: memory has it still.
      pauseStorage(output, e);
      return false;
    }
    if (!catalog.remove(output)) {
      storage.drop(output.shuffleId(), output.mapId());
      return false;
    }
    movedToFiles = movedToFiles.and(bytes, finished, clock.since(start));
    return true;
  }

  /** What takes map outputs now: nothing for a while after it has failed. */
  private @Nullable ColdStorage storage() {
    return clock.isOver(storagePausedUntil) ? cold : null;
  }

  private void pauseStorage(final OwnOutput output, final Exception cause) {
    movedToFiles = movedToFiles.andFailure();
    storagePausedUntil = clock.in(STORAGE_PAUSE);
    ShuffleCode.STORAGE_FAILED
        .says(
            "could not write a map output to a file, so it stays in memory; no map output is moved"
                + " to files for "
                + STORAGE_PAUSE.toSeconds()
                + " s")
        .at(output.toString())
        .because(cause)
        .remedy("make room in Spark's local directories (spark.local.dir)")
        .warn(LOG);
  }

  private boolean isFinished(final OwnOutput output) {
    return accessTimes.isFinished(output.shuffleId());
  }

  /** Returns the outputs moved from GPU memory to host memory. */
  SpilledOutputs movedToHost() {
    return movedToHost;
  }

  /** Returns the outputs moved from host memory to files. */
  SpilledOutputs movedToFiles() {
    return movedToFiles;
  }

  /** Ends a round after the output that is on its way. Idempotent. */
  void stop() {
    stopped = true;
  }
}
