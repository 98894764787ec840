package io.zerohop.shuffle;

import io.zerohop.shuffle.catalog.OwnMemory;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.spill.PoolShrinker;
import io.zerohop.shuffle.spill.Reach;
import io.zerohop.shuffle.spill.SpilledOutputs;
import io.zerohop.shuffle.spill.Spiller;
import java.time.Duration;
import java.util.Deque;

/**
 * Makes room in an executor's pools: has map outputs that nobody uses leave them, on a thread of
 * its own, and gives GPU memory back to who asks for it. Thread safe.
 */
final class Evictor {
  private static final Duration PERIOD = Duration.ofMillis(100);

  private final OwnMemory memory;
  private final Spiller spiller;

  /** Null if map outputs stay. */
  private final Maintenance thread;

  /** Null without a GPU. */
  private final PoolShrinker shrinker;

  /**
   * Starts the thread, if map outputs may leave.
   *
   * @param spiller moves them
   * @param begun takes what ends the thread, as soon as it runs
   */
  Evictor(
      final NodeConfig config,
      final boolean hasGpu,
      final OwnMemory memory,
      final Spiller spiller,
      final Deque<Runnable> begun) {
    this.memory = memory;
    this.spiller = spiller;
    thread =
        config.spillSettings().start() < 1
            ? new Maintenance("spiller", PERIOD, spiller::round)
            : null;
    if (thread != null) {
      begun.push(thread::close);
    }
    shrinker =
        hasGpu ? spiller.shrinker(thread == null ? null : thread::hurry, memory::isShared) : null;
    for (final Pool pool : memory.tiers().all()) {
      pool.onShortage(() -> shortage(pool.tier()));
    }
  }

  /** A pool refused an allocation: what readers have passed is freed, and more is on its way. */
  private void shortage(final Tier tier) {
    memory.reclaimer().poll();
    if (thread != null) {
      spiller.shortage(tier);
      thread.hurry();
    }
  }

  /** See {@link ShuffleNode#shrinkDevicePool}. */
  long shrink(final long bytes, final Reach reach, final Duration limit) {
    return shrinker == null ? 0 : shrinker.shrink(bytes, reach, limit);
  }

  /** An upper bound of what {@link #shrink} could give back now, in bytes. */
  long shrinkableBytes(final Reach reach) {
    return shrinker == null ? 0 : shrinker.shrinkableBytes(reach);
  }

  /** Bytes of GPU memory that were given back since the start. */
  long givenBytes() {
    return shrinker == null ? 0 : shrinker.givenBytes();
  }

  SpilledOutputs movedToHost() {
    return spiller.movedToHost();
  }

  SpilledOutputs movedToFiles() {
    return spiller.movedToFiles();
  }

  /** Nothing is moved or given back any more; what is under way may still be. */
  void stop() {
    if (shrinker != null) {
      shrinker.stop();
    }
    spiller.close();
  }

  /** Ends the thread, for which it waits a limited time. Idempotent. */
  void close() {
    if (thread != null) {
      thread.close();
    }
  }

  /** The thread if it is still at work; else null. */
  Maintenance alive() {
    return thread != null && thread.isAlive() ? thread : null;
  }
}
