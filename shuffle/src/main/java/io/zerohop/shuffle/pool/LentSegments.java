package io.zerohop.shuffle.pool;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Device;
import io.zerohop.device.DeviceMemoryException;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.posix.Clock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import org.agrona.CloseHelper;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The segments that a pool lends to other executors of the node, and how much each of them may
 * have. All borrowers together have at most half of the pool, and only while a quarter of it stays
 * free. If they want more than that half, each may have an equal share: who has more gives back,
 * and gets no more while another waits for its share.
 *
 * <p>A segment is retired in the registry to recall it. It counts until its borrower has given it
 * back, or its connection has ended. Thread safe; shares the pool's lock, and owns the segments.
 */
public final class LentSegments {
  private static final Logger LOG = LoggerFactory.getLogger(LentSegments.class);

  /** The part of the limit that stays free; as a divisor. */
  private static final int KEEPS_FREE = 4;

  /** A pool with less than this part free wants as much back; as a divisor of the limit. */
  private static final int RECALLED_AT_ONCE = 8;

  /**
   * How long a borrower that was refused its share comes before others, who asks again sooner; and
   * the pause after the device had no memory.
   */
  private static final Duration TURN = Duration.ofSeconds(1);

  /** How long a recalled segment is taken to be on its way: its borrower may ignore that. */
  private static final Duration COMING = Duration.ofSeconds(1);

  /** Of the slots in the segment table, which blocks and catalogs need as well. */
  private static final int MAX_LOANS = SegmentIds.MAX_SLOTS / 4;

  private final Pool pool;
  private final Device device;
  private final SegmentRegistry registry;
  private final Object lock;
  private final boolean lends;
  private final long limit;
  private final Clock clock;
  private final long quota;

  /** In the order in which they were lent. */
  @GuardedBy("lock")
  private final Map<Long, Lent> byId = new LinkedHashMap<>();

  /** Bytes by borrower, with those of segments that are being made. */
  @GuardedBy("lock")
  private final Map<Long, Long> byBorrower = new LinkedHashMap<>();

  /** Until when borrowers wait that were refused their share. */
  @GuardedBy("lock")
  private final Map<Long, Long> waiting = new LinkedHashMap<>();

  @GuardedBy("lock")
  private long bytes;

  @GuardedBy("lock")
  private long recalls;

  /** Whether the device had no memory, and until when that is taken to last. */
  @GuardedBy("lock")
  private boolean isOut;

  @GuardedBy("lock")
  private long outUntil;

  @GuardedBy("lock")
  private boolean saidLent;

  @GuardedBy("lock")
  private boolean saidRecalled;

  /**
   * @param pool that lends; called with its lock held
   * @param lends whether it lends at all
   * @param limit of the pool
   * @param lock of the pool
   * @param clock by which borrowers wait for their shares
   */
  LentSegments(
      final Pool pool,
      final Device device,
      final SegmentRegistry registry,
      final Object lock,
      final boolean lends,
      final long limit,
      final Clock clock) {
    this.pool = pool;
    this.device = device;
    this.registry = registry;
    this.lock = lock;
    this.lends = lends;
    this.limit = limit;
    this.clock = clock;
    this.quota = limit / 2;
  }

  /**
   * Lends a segment to a peer, which it may write until it is taken back. Takes the time of one
   * allocation, without the lock.
   *
   * @param borrower stands for the peer
   * @param wanted the size of the segment
   * @return the segment's id and a handle, for the caller to close; absent if none is lent
   * @throws io.zerohop.device.ZerohopException if the device does not export it
   */
  public PeerLink.@Nullable Loan lend(final long borrower, final long wanted) {
    if (!lends
        || wanted <= 0
        || wanted > Pool.MAX_SEGMENT_BYTES
        || wanted % device.granularity() != 0) {
      return null;
    }
    synchronized (lock) {
      if (byId.size() >= MAX_LOANS || wanted > spare() || !count(borrower, wanted)) {
        return null;
      }
      if (!pool.lend(wanted)) {
        discount(borrower, wanted);
        return null; // Segments that hold little are in the way.
      }
    }
    Segment segment = null;
    SegmentHandle handle = null;
    long id = -1;
    try {
      segment = device.allocate(wanted, PeerAccess.WRITE);
      handle = segment.export();
      id = add(borrower, segment);
      return id < 0 ? null : new PeerLink.Loan(id, handle);
    } catch (final DeviceMemoryException e) {
      LOG.debug("a segment of {} bytes is not lent", wanted, e);
      synchronized (lock) {
        isOut = true;
        outUntil = clock.in(TURN); // Others have taken what was left free.
      }
      return null;
    } finally {
      if (id < 0) {
        withdraw(borrower, wanted, segment, handle);
      }
    }
  }

  /** Counts bytes for a borrower, if its share allows them. */
  @GuardedBy("lock")
  private boolean count(final long borrower, final long wanted) {
    waiting.values().removeIf(clock::isOver);
    final Set<Long> borrowers = new HashSet<>(byBorrower.keySet());
    borrowers.addAll(waiting.keySet());
    borrowers.add(borrower);
    final long share = quota / borrowers.size();
    final long has = byBorrower.getOrDefault(borrower, 0L) + wanted;
    waiting.remove(borrower);
    final boolean fits = bytes + wanted <= quota && (has <= share || waiting.isEmpty());
    if (fits) {
      bytes += wanted;
      byBorrower.put(borrower, has);
    } else if (has <= share) {
      waiting.put(borrower, clock.in(TURN));
      recallFromRichest(share);
    }
    return fits;
  }

  @GuardedBy("lock")
  private void discount(final long borrower, final long counted) {
    bytes -= counted;
    byBorrower.computeIfPresent(
        borrower, (id, has) -> has == counted ? null : Long.valueOf(has - counted));
  }

  /**
   * Recalls one segment: who asks will ask again. What was recalled and is not on its way any more
   * does not count, or a borrower that ignores recalls would stay the richest.
   */
  @GuardedBy("lock")
  private void recallFromRichest(final long share) {
    final Map<Long, Long> kept = new LinkedHashMap<>();
    for (final Lent lent : byId.values()) {
      if (isComing(lent)) {
        return;
      }
      if (!lent.recalled) {
        kept.merge(lent.borrower, lent.segment.bytes(), Long::sum);
      }
    }
    kept.entrySet().stream()
        .filter(entry -> entry.getValue() > share)
        .max(Map.Entry.comparingByValue())
        .flatMap(
            richest ->
                byId.values().stream()
                    .filter(lent -> !lent.recalled && lent.borrower == richest.getKey())
                    .findFirst())
        .ifPresent(this::recallOne);
  }

  @GuardedBy("lock")
  private boolean isComing(final Lent lent) {
    return lent.recalled && !clock.isOver(lent.comingUntil);
  }

  private long add(final long borrower, final Segment segment) {
    synchronized (lock) {
      final long id = registry.register(SegmentIds::lentId);
      if (id > 0) {
        byId.put(id, new Lent(id, borrower, segment));
        if (!saidLent) {
          saidLent = true;
          LOG.info("lends GPU memory to another executor of this node (logged once)");
        }
      }
      publish();
      return id;
    }
  }

  private void withdraw(
      final long borrower,
      final long counted,
      final @Nullable Segment segment,
      final @Nullable SegmentHandle handle) {
    // First: what is counted must be right whatever a driver says.
    synchronized (lock) {
      discount(borrower, counted);
      pool.unlend(counted, 0);
      publish();
    }
    try {
      if (handle != null) {
        handle.close();
      }
    } finally {
      if (segment != null) {
        segment.close();
      }
    }
  }

  /** Tells peers how many bytes they may ask for now. Who has its share already gets less. */
  void publish() {
    if (!lends) {
      return;
    }
    synchronized (lock) {
      registry.lendable(Math.max(0, Math.min(quota, spare())));
    }
  }

  @GuardedBy("lock")
  private long spare() {
    isOut = isOut && !clock.isOver(outUntil);
    return isOut ? 0 : pool.lendable() - limit / KEEPS_FREE;
  }

  /** Bytes that are lent. */
  public long bytes() {
    synchronized (lock) {
      return bytes;
    }
  }

  /** Returns whether something is lent that was not recalled. */
  boolean canRecall() {
    synchronized (lock) {
      return byId.values().stream().anyMatch(lent -> !lent.recalled);
    }
  }

  /** Lent segments that were recalled since the start. */
  long recalls() {
    synchronized (lock) {
      return recalls;
    }
  }

  /**
   * Recalls what a pool misses that is full, or nearly: an eighth of its limit at least, since it
   * takes a while to come.
   */
  void recallFor(final long missing) {
    recall(Math.max(missing, limit / RECALLED_AT_ONCE));
  }

  /** Returns whether less is free than a pool goes on with while it lends. */
  boolean isWanted(final long free) {
    return free < limit / RECALLED_AT_ONCE;
  }

  /**
   * Recalls segments, the oldest first. Does not wait: borrowers move what lies there, which takes
   * them some tenths of a second.
   *
   * @param wanted bytes; whole segments are recalled, and those that were within a second count
   */
  public void recall(final long wanted) {
    synchronized (lock) {
      long coming = 0;
      final List<Lent> more = new ArrayList<>();
      for (final Lent lent : byId.values()) {
        if (!lent.recalled) {
          more.add(lent);
        } else if (isComing(lent)) {
          coming += lent.segment.bytes();
        }
      }
      for (final Lent lent : more) {
        if (coming >= wanted) {
          return;
        }
        recallOne(lent);
        coming += lent.segment.bytes();
      }
    }
  }

  private void recallOne(final Lent lent) {
    synchronized (lock) {
      lent.recalled = true;
      lent.comingUntil = clock.in(COMING);
      recalls++;
      registry.retire(lent.id);
      if (!saidRecalled) {
        saidRecalled = true;
        LOG.info(
            "wants GPU memory back that it lends to another executor of this node (logged once)");
      }
    }
  }

  /** A borrower gives a segment back. Of an id that is not lent to it, nothing comes. */
  public void takeBack(final long borrower, final long id) {
    synchronized (lock) {
      final Lent lent = byId.get(id);
      if (lent != null && lent.borrower == borrower) {
        end(lent);
      }
    }
  }

  /** A borrower is gone: what it had is free once nobody has it mapped. */
  public void takeBackAll(final long borrower) {
    synchronized (lock) {
      waiting.remove(borrower);
      endAll(lent -> lent.borrower == borrower);
    }
  }

  /** Closes all segments. */
  void close() {
    synchronized (lock) {
      endAll(lent -> true);
    }
  }

  /** Ends them all, also if a driver fails to free one. */
  @GuardedBy("lock")
  private void endAll(final Predicate<Lent> which) {
    final List<AutoCloseable> ends = new ArrayList<>();
    byId.values().stream().filter(which).forEach(lent -> ends.add(() -> end(lent)));
    CloseHelper.closeAll(ends);
  }

  private void end(final Lent lent) {
    synchronized (lock) {
      byId.remove(lent.id);
      if (!lent.recalled) {
        registry.retire(lent.id);
      }
      final long counted = lent.segment.bytes();
      discount(lent.borrower, counted);
      pool.unlend(counted, counted);
      publish();
      lent.segment.close(); // Last: what is counted must be right whatever a driver says.
    }
  }

  private static final class Lent {
    private final long id;
    private final long borrower;
    private final Segment segment;
    private boolean recalled;
    private long comingUntil;

    Lent(final long id, final long borrower, final Segment segment) {
      this.id = id;
      this.borrower = borrower;
      this.segment = segment;
    }
  }
}
