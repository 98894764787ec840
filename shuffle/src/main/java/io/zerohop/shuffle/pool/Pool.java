package io.zerohop.shuffle.pool;

import io.zerohop.device.Device;
import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.pool.BorrowedSegments.Loan;
import io.zerohop.shuffle.pool.PoolSegment.FreeMap;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Exportable memory of one device, cut into regions. Grows segment by segment up to a limit; a
 * region larger than an ordinary segment gets one of its own, which goes away with it. Ordinary
 * segments that stay empty are closed after a while.
 *
 * <p>A pool in GPU memory that is full goes on in segments that other executors lend. Those have no
 * part of its limit. What it lends itself has, until it is given back; {@link LentSegments} has the
 * rules.
 *
 * <p>Thread safe. Owns its segments, own, lent and borrowed; {@link #close} fails if regions are
 * still out.
 */
public final class Pool implements AutoCloseable, SegmentResolver {
  private static final Logger LOG = LoggerFactory.getLogger(Pool.class);

  /** Largest segment: buffers over it are indexed by int. */
  static final long MAX_SEGMENT_BYTES = (1L << 31) - (1L << 21);

  private final Device device;
  private final Tier tier;
  private final PeerAccess access;
  private final SegmentRegistry registry;
  private final long limit;
  private final long segmentBytes;
  private final long segmentIdleNanos;
  private final Clock clock;
  private final Object lock = new Object();
  private final List<PoolSegment> segments = new ArrayList<>();
  private final AtomicReferenceArray<PoolSegment> bySlot =
      new AtomicReferenceArray<>(SegmentIds.MAX_SLOTS);
  private final LentSegments lent;
  private final BorrowedSegments borrowed;

  /** Of own segments and lent ones. */
  private long reserved;

  private long used;
  private long peak;
  private int regions;
  private long returned;
  private long pausedUntil;
  private boolean paused;
  private boolean frozen;
  private boolean closed;
  private volatile Runnable reclaim = () -> {};

  /**
   * @param tier what the device's memory is called in segment ids
   * @param access what peers may do with its segments
   * @param conf with a size for this tier that is not {@code auto}
   * @param clock by which segments are idle
   */
  public Pool(
      final Device device,
      final Tier tier,
      final PeerAccess access,
      final SegmentRegistry registry,
      final Config conf,
      final Clock clock) {
    this.device = device;
    this.tier = tier;
    this.access = access;
    this.registry = registry;
    this.limit = tier == Tier.HOST ? conf.pool().size() : conf.device().poolSize();
    if (limit <= 0) {
      throw new IllegalArgumentException(tier.sizeKey() + " is not resolved: " + limit);
    }
    final long segment =
        tier == Tier.HOST ? conf.pool().segmentSize() : conf.device().segmentSize();
    this.segmentBytes = Math.min(Math.min(segment, limit), MAX_SEGMENT_BYTES);
    this.segmentIdleNanos = conf.pool().segmentIdle().toNanos();
    final boolean lends = tier == Tier.DEVICE && conf.device().poolBorrow();
    this.clock = clock;
    this.lent = new LentSegments(this, device, registry, lock, lends, limit, clock);
    this.borrowed = new BorrowedSegments(this, lock, clock, limit, granules(segmentBytes));
    lent.publish();
  }

  /** Returns the kind of its memory. */
  public Tier tier() {
    return tier;
  }

  /**
   * Sets the action to try once before an allocation is refused; called without the pool's lock.
   */
  public void onShortage(final Runnable action) {
    reclaim = action;
  }

  /** Returns what it lends to other executors. */
  public LentSegments lent() {
    return lent;
  }

  /** Returns what it borrows from other executors. */
  public BorrowedSegments borrowed() {
    return borrowed;
  }

  /**
   * Takes a region with one reference, owned by the caller. Own memory comes first, then borrowed.
   *
   * @throws PoolFullException if the limit, or the device, leaves no room
   */
  public Region allocate(final long bytes) {
    final long wanted = FreeMap.align(Math.max(bytes, 1));
    if (wanted > MAX_SEGMENT_BYTES) {
      throw new PoolFullException(
          "a region of " + bytes + " bytes is larger than a segment can be", null);
    }
    Region region = tryAllocate(wanted, null);
    if (region == null) {
      borrowed.refused(granules(wanted));
      reclaim.run();
      final @Nullable DeviceMemoryException[] cause = new DeviceMemoryException[1];
      region = tryAllocate(wanted, cause);
      if (region == null) {
        throw full(bytes, cause[0]);
      }
    }
    borrowed.askIfShort();
    return region;
  }

  /**
   * Takes a region if there is room.
   *
   * @param cause gets what the device said, if it was out of memory
   */
  private @Nullable Region tryAllocate(
      final long wanted, final @Nullable DeviceMemoryException @Nullable [] cause) {
    synchronized (lock) {
      if (closed) {
        throw new ZerohopException(
            ZerohopException.Category.RETRY, "the pool is closed: this executor is shutting down");
      }
      if (frozen) {
        throw PoolFullException.frozen(tier);
      }
      final boolean isPaused = isPaused();
      PoolSegment segment = isPaused ? null : bestFit(wanted, false);
      if (segment == null && !isPaused) {
        segment = grow(wanted, cause);
      }
      if (segment == null) {
        segment = bestFit(wanted, true);
      }
      if (segment == null && isPaused) {
        throw PoolFullException.paused(tier);
      }
      return segment == null ? null : take(segment, wanted);
    }
  }

  private @Nullable PoolSegment bestFit(final long wanted, final boolean isBorrowed) {
    PoolSegment best = null;
    long bestFree = Long.MAX_VALUE;
    for (final PoolSegment segment : segments) {
      if ((segment.loan() != null) == isBorrowed
          && !segment.recalled()
          && !segment.dedicated()
          && segment.free().largestFree() >= wanted
          && segment.free().freeBytes() < bestFree) {
        best = segment;
        bestFree = segment.free().freeBytes();
      }
    }
    return best;
  }

  private Region take(final PoolSegment segment, final long wanted) {
    final long offset = segment.free().allocate(wanted);
    used += wanted;
    peak = Math.max(peak, used);
    regions++;
    borrowed.took(segment, wanted);
    return new Region(this, segment, offset, wanted);
  }

  private @Nullable PoolSegment grow(
      final long wanted, final @Nullable DeviceMemoryException @Nullable [] cause) {
    final long granularity = device.granularity();
    final long least = granules(wanted);
    final boolean dedicated = wanted > segmentBytes;
    if (reserved + least > limit) {
      closeEmpty(reserved + least - limit);
    }
    final long room = (limit - reserved) / granularity * granularity;
    if (room < least) {
      if (least <= limit) {
        lent.recallFor(least - room);
      }
      return null;
    }
    final long bytes = dedicated ? least : Math.max(least, Math.min(segmentBytes, room));
    final Segment segment;
    try {
      segment = device.allocate(bytes, access);
    } catch (final DeviceMemoryException e) {
      if (cause != null) {
        cause[0] = e;
      }
      return null;
    }
    final long id = registry.register((generation, slot) -> SegmentIds.id(generation, tier, slot));
    if (id < 0) {
      segment.close();
      return null;
    }
    final PoolSegment added = new PoolSegment(new SegmentMemory(id, segment), dedicated, null);
    add(added);
    reserved += segment.bytes();
    LOG.debug("pool grew by segment {} of {} bytes to {}", id, segment.bytes(), reserved);
    return added;
  }

  private void add(final PoolSegment segment) {
    segments.add(segment);
    bySlot.set(SegmentIds.slot(segment.memory().id()), segment);
  }

  private long granules(final long bytes) {
    final long granularity = device.granularity();
    return (bytes + granularity - 1) / granularity * granularity;
  }

  /**
   * Takes in a borrowed segment, which is the pool's from then on.
   *
   * @return false if the pool takes nothing any more; the segment is closed then, and not given
   *     back
   */
  public boolean adopt(final Segment segment, final Loan loan) {
    synchronized (lock) {
      final long id = closed || frozen ? -1 : registry.register(SegmentIds::borrowedId);
      if (id < 0) {
        segment.close();
        return false;
      }
      final PoolSegment added = new PoolSegment(new SegmentMemory(id, segment), false, loan);
      added.becameEmpty(clock.nanos());
      add(added);
      borrowed.added(added);
      return true;
    }
  }

  /**
   * The lender wants a segment back: nothing is put there any more, and it goes when it is empty.
   */
  public void recalled(final Loan loan) {
    synchronized (lock) {
      for (final PoolSegment segment : List.copyOf(segments)) {
        if (segment.loan() == loan && !segment.recalled()) {
          borrowed.recalled(segment);
          if (segment.free().isEmpty()) {
            close(segment);
          }
        }
      }
    }
  }

  /** Returns whether a borrowed segment is to go that holds something. */
  public boolean hasRecalled() {
    synchronized (lock) {
      return !borrowed.isEmpty() && segments.stream().anyMatch(PoolSegment::recalled);
    }
  }

  void free(final Region region) {
    synchronized (lock) {
      final PoolSegment segment = region.segment();
      segment.free().free(region.offset(), region.bytes());
      used -= region.bytes();
      regions--;
      if (segment.loan() != null) {
        borrowed.freed(segment, region.bytes());
      }
      if (segment.free().isEmpty()) {
        segment.becameEmpty(clock.nanos());
        if (segment.dedicated() || segment.recalled()) {
          close(segment);
        }
      }
    }
  }

  /** Closes segments that have been empty for long. */
  public void trim() {
    synchronized (lock) {
      final long now = clock.nanos();
      for (final PoolSegment segment : List.copyOf(segments)) {
        final boolean goesAtOnce = isPaused() && segment.loan() == null;
        if (segment.free().isEmpty()
            && (goesAtOnce || now - segment.emptySince() > segmentIdleNanos)) {
          close(segment);
        }
      }
      lent.publish();
    }
  }

  /** Closes all own segments that are empty now, however long they have been so. */
  public void closeEmpty() {
    synchronized (lock) {
      closeEmpty(Long.MAX_VALUE);
    }
  }

  /**
   * Refuses allocations for so long, as a full pool does, and keeps no segment that is empty:
   * others need the memory. A later call counts, also if it ends sooner.
   */
  public void pause(final Duration length) {
    synchronized (lock) {
      paused = true;
      pausedUntil = clock.in(length);
    }
  }

  /** Returns whether it pauses, see {@link #pause}. */
  public boolean isPaused() {
    synchronized (lock) {
      paused = paused && !clock.isOver(pausedUntil);
      return paused;
    }
  }

  private void closeEmpty(final long wanted) {
    long got = 0;
    for (final PoolSegment segment : List.copyOf(segments)) {
      if (got < wanted && segment.loan() == null && segment.free().isEmpty()) {
        got += segment.memory().segment().bytes();
        close(segment);
      }
    }
  }

  private void close(final PoolSegment segment) {
    final SegmentMemory memory = segment.memory();
    if (!segments.remove(segment)) {
      return;
    }
    bySlot.set(SegmentIds.slot(memory.id()), null);
    registry.retire(memory.id());
    final long bytes = memory.segment().bytes();
    final Loan loan = segment.loan();
    if (loan == null) {
      reserved -= bytes;
      returned += bytes;
    } else {
      borrowed.removed(segment);
    }
    try {
      memory.close();
    } finally {
      if (loan != null) {
        loan.giveBack();
      }
    }
  }

  /** A segment of this pool, if there is one of this id (still). */
  @Override
  public @Nullable SegmentMemory resolve(final long segmentId) {
    final PoolSegment segment = bySlot.get(SegmentIds.slot(segmentId));
    return segment != null && segment.memory().id() == segmentId ? segment.memory() : null;
  }

  /** A new handle to a segment that the caller closes; absent if it is gone. Does not wait. */
  public @Nullable SegmentHandle export(final long segmentId) {
    final SegmentMemory memory = resolve(segmentId);
    try {
      return memory == null ? null : memory.segment().export();
    } catch (final IllegalStateException e) {
      return null; // Closed just now.
    }
  }

  /** Refuses allocations from now on, so that no byte that a reader may have found changes. */
  public void freeze() {
    synchronized (lock) {
      closed = true;
    }
  }

  /**
   * The same for an executor that goes on: refusals are {@link PoolFullException}, so that what it
   * writes goes to files. Cannot be undone.
   */
  public void freezeForFiles() {
    synchronized (lock) {
      frozen = true;
    }
  }

  /** Returns its contents now. */
  public PoolStats stats() {
    synchronized (lock) {
      long empty = 0;
      for (final PoolSegment segment : segments) {
        final boolean isEmpty = segment.loan() == null && segment.free().isEmpty();
        empty += isEmpty ? segment.memory().segment().bytes() : 0;
      }
      return new PoolStats(
          limit, reserved, used, peak, empty, returned, segments.size(), regions, borrowed.stats());
    }
  }

  /**
   * Closes all segments.
   *
   * @throws IllegalStateException if regions were never released; the segments are closed even so
   */
  @Override
  public void close() {
    synchronized (lock) {
      closed = true;
      for (final PoolSegment segment : List.copyOf(segments)) {
        close(segment);
      }
      lent.close();
      if (regions != 0) {
        throw new IllegalStateException(
            regions + " regions (" + used + " bytes) were never released");
      }
    }
  }

  /** Returns own bytes that are neither used nor lent. With the lock. */
  long ownFree() {
    return limit - lent.bytes() - (used - borrowed.used());
  }

  /** Returns whether it takes blocks in. With the lock. */
  boolean isOpen() {
    return !closed && !frozen;
  }

  /** Returns own bytes that it may lend; 0 while it gives nothing away. With the lock. */
  long lendable() {
    return isOpen() && !isPaused() ? ownFree() : 0;
  }

  /** Counts bytes as lent; false if there are not so many, and none are empty. With the lock. */
  boolean lend(final long bytes) {
    if (reserved + bytes > limit) {
      closeEmpty(reserved + bytes - limit);
    }
    final boolean fits = reserved + bytes <= limit;
    reserved += fits ? bytes : 0;
    return fits;
  }

  /**
   * Ends that. With the lock.
   *
   * @param gone bytes that somebody had, and that went back to the device
   */
  void unlend(final long bytes, final long gone) {
    reserved -= bytes;
    returned += gone;
  }

  private PoolFullException full(final long bytes, final @Nullable DeviceMemoryException cause) {
    synchronized (lock) {
      final String state = used + " of " + limit + " bytes are used, " + reserved + " are reserved";
      return PoolFullException.full(tier, bytes, state, cause);
    }
  }
}
