package io.zerohop.shuffle.spill;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.pool.Pool;
import io.zerohop.shuffle.pool.PoolStats;
import io.zerohop.shuffle.pool.Reclaimer;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.spill.Evictor.Eviction;
import io.zerohop.shuffle.spill.Evictor.EvictionScope;
import io.zerohop.shuffle.transport.samenode.OwnMemory;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Releases GPU memory of the pool to the driver when others have run out of it: empty segments at
 * once, then those that it lends, then those that the spiller empties. Whoever asks takes turns.
 * Thread safe; holds no lock of the pool or the catalog while it waits, and takes no GPU memory
 * itself.
 */
final class PoolShrinker {
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

  private final Pool pool;
  private final Reclaimer reclaimer;
  private final @Nullable Spiller spiller;
  private final Runnable hurry;
  private final BooleanSupplier peers;
  private final BooleanSupplier copying;
  private final Clock clock;
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
   * @param memory whose pool in GPU memory has segments, which other processes may have mapped
   * @param spiller empties segments; absent if nothing is to be moved
   * @param hurry has the spiller's next round begin soon; does not wait
   * @param copying whether copies of published outputs are under way
   * @param clock by which its waits are measured
   */
  PoolShrinker(
      final OwnMemory memory,
      final @Nullable Spiller spiller,
      final Runnable hurry,
      final BooleanSupplier copying,
      final Clock clock) {
    this.pool = memory.tiers().of(Tier.DEVICE);
    this.reclaimer = memory.reclaimer();
    this.spiller = spiller;
    this.hurry = hurry;
    this.peers = memory::isShared;
    this.copying = copying;
    this.clock = clock;
  }

  /**
   * Gives memory back.
   *
   * @param bytes that are wanted; whole segments go, and all that are empty, so it may be more
   * @param limit how long to wait for others' turns, for map outputs to move and for readers to let
   *     go of them; zero if only what is empty is to go
   * @return bytes that were given back during this call
   */
  long shrink(final long bytes, final EvictionScope scope, final Duration limit) {
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
      return stopped ? 0 : shrink(bytes, scope, limit, deadline);
    } finally {
      turn.unlock();
    }
  }

  private long shrink(
      final long bytes, final EvictionScope scope, final Duration limit, final long deadline) {
    final long before = pool.stats().returnedBytes();
    pool.pause(limit.plus(Evictor.SHRINK_PAUSE));
    try {
      final Eviction eviction = new Eviction(scope, () -> bytes - giveBack(before), clock);
      if (eviction.missing() > 0) {
        recall(eviction, deadline);
      }
      if (eviction.missing() > 0 && spiller != null && !isVain()) {
        evict(spiller, eviction, deadline);
      }
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt(); // What there is by now has to do.
    } finally {
      pool.pause(Evictor.SHRINK_PAUSE);
    }
    final long returned = giveBack(before);
    if (returned > 0) {
      vain = false;
      given.add(returned);
      letPeersUnmap();
    }
    return returned;
  }

  /** An upper bound of what {@link #shrink} could give back now, in bytes. */
  long shrinkableBytes(final EvictionScope scope) {
    final PoolStats stats = pool.stats();
    if (spiller != null && scope == EvictionScope.ALL) {
      return stats.reservedBytes();
    }
    final long cold = spiller == null ? 0 : spiller.coldDeviceBytes();
    return stats.emptyBytes() + stats.loans().lentBytes() + cold;
  }

  /** Gives back what is empty; returns how much has been since the pool had given so much. */
  private long giveBack(final long before) {
    reclaimer.poll();
    pool.closeEmpty();
    return pool.stats().returnedBytes() - before;
  }

  /** What is lent goes before own blocks do: others have it as long as it is not needed here. */
  private void recall(final Eviction eviction, final long deadline) throws InterruptedException {
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
        ignoredUntil = clock.in(Evictor.SHRINK_PAUSE);
        return;
      }
      eviction.await(Math.min(left, LOOK_NANOS));
    }
  }

  private void evict(final Spiller by, final Eviction eviction, final long deadline)
      throws InterruptedException {
    // Before it is looked: copies that end behind that are found by another look.
    boolean copies = copying.getAsBoolean();
    int looks = 0;
    by.ask(eviction);
    hurry.run();
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
          by.ask(eviction);
          hurry.run();
        }
        final long left = clock.left(deadline);
        if (left <= 0) {
          // Its readers may wait for the same memory as whoever asks.
          vain = true;
          vainUntil = clock.in(Evictor.SHRINK_PAUSE);
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
    if (peers.getAsBoolean()) {
      try {
        clock.sleep(PEERS_UNMAP);
      } catch (final InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Bytes that it gave back since the start. */
  long givenBytes() {
    return given.sum();
  }

  /** Ends waits and gives nothing back any more. Idempotent. */
  void stop() {
    stopped = true;
  }
}
