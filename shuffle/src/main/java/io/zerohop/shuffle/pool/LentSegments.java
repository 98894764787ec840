package io.zerohop.shuffle.pool;

import io.zerohop.device.Segment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The segments that a pool lends to other executors of the node, and how much each of them may
 * have. All borrowers together have at most half of the pool. Who asks while others have more than
 * an equal share of that half gets nothing yet, and the others give back.
 *
 * <p>A segment is retired in the registry to recall it. It counts until its borrower has given it
 * back, or its connection has ended. Guarded by the pool's lock; owns the segments.
 */
final class LentSegments {
  private static final Logger LOG = LoggerFactory.getLogger(LentSegments.class);

  private final SegmentRegistry registry;
  private final long quota;

  /** In the order in which they were lent. */
  private final Map<Long, Lent> byId = new LinkedHashMap<>();

  /** Bytes by borrower, with those of segments that are being made. */
  private final Map<Long, Long> byBorrower = new LinkedHashMap<>();

  private long bytes;
  private long recalls;
  private boolean saidLent;
  private boolean saidRecalled;

  /**
   * @param limit of the pool
   */
  LentSegments(final SegmentRegistry registry, final long limit) {
    this.registry = registry;
    this.quota = limit / 2;
  }

  /** Bytes that are lent. */
  long bytes() {
    return bytes;
  }

  /** Bytes that are lent and not recalled. */
  long unrecalledBytes() {
    return byId.values().stream()
        .filter(lent -> !lent.recalled)
        .mapToLong(lent -> lent.segment.bytes())
        .sum();
  }

  /** Lent segments that were recalled since the start. */
  long recalls() {
    return recalls;
  }

  /** Most bytes that are lent at a time. */
  long quota() {
    return quota;
  }

  /**
   * Counts bytes for a borrower, if its share allows them; recalls from another that has more than
   * its own.
   *
   * @return whether they may be lent
   */
  boolean reserve(final long borrower, final long wanted) {
    final long has = byBorrower.getOrDefault(borrower, 0L);
    if (bytes + wanted > quota) {
      final int borrowers = byBorrower.size() + (has == 0 ? 1 : 0);
      if (has + wanted <= quota / borrowers) {
        recallFromRichest(quota / borrowers);
      }
      return false;
    }
    bytes += wanted;
    byBorrower.put(borrower, has + wanted);
    return true;
  }

  /** One segment at a time: who asks will ask again. */
  private void recallFromRichest(final long share) {
    final boolean pending = byId.values().stream().anyMatch(lent -> lent.recalled);
    if (pending) {
      return;
    }
    byBorrower.entrySet().stream()
        .filter(entry -> entry.getValue() > share)
        .max(Map.Entry.comparingByValue())
        .ifPresent(
            richest ->
                byId.values().stream()
                    .filter(lent -> lent.borrower == richest.getKey())
                    .findFirst()
                    .ifPresent(this::recall));
  }

  /** Drops what {@link #reserve} counted. */
  void cancel(final long borrower, final long reserved) {
    bytes -= reserved;
    byBorrower.computeIfPresent(
        borrower, (id, has) -> has == reserved ? null : Long.valueOf(has - reserved));
  }

  /** Takes over a segment whose bytes were reserved; returns its id, or -1 if there is none. */
  long add(final long borrower, final Segment segment) {
    final long id = registry.registerLent();
    if (id > 0) {
      byId.put(id, new Lent(id, borrower, segment));
      if (!saidLent) {
        saidLent = true;
        LOG.info("lends GPU memory to another executor of this node (logged once)");
      }
    }
    return id;
  }

  /**
   * Recalls segments, the oldest first. Does not wait.
   *
   * @param wanted bytes; whole segments are recalled, and those that were before count
   */
  void recall(final long wanted) {
    long coming = 0;
    final List<Lent> more = new ArrayList<>();
    for (final Lent lent : byId.values()) {
      if (lent.recalled) {
        coming += lent.segment.bytes();
      } else {
        more.add(lent);
      }
    }
    for (final Lent lent : more) {
      if (coming >= wanted) {
        return;
      }
      recall(lent);
      coming += lent.segment.bytes();
    }
  }

  private void recall(final Lent lent) {
    if (lent.recalled) {
      return;
    }
    lent.recalled = true;
    recalls++;
    registry.retire(lent.id);
    if (!saidRecalled) {
      saidRecalled = true;
      LOG.info(
          "wants GPU memory back that it lends to another executor of this node (logged once)");
    }
  }

  /**
   * Takes a segment back, if it is lent to this borrower.
   *
   * @return the segment, for the caller to close
   */
  @Nullable Segment takeBack(final long borrower, final long id) {
    final Lent lent = byId.get(id);
    if (lent == null || lent.borrower != borrower) {
      return null;
    }
    byId.remove(id);
    cancel(borrower, lent.segment.bytes());
    if (!lent.recalled) {
      registry.retire(id);
    }
    return lent.segment;
  }

  /** Takes back all segments of a borrower; the caller closes them. */
  List<Segment> takeBackAll(final long borrower) {
    final List<Segment> back = new ArrayList<>();
    for (final Lent lent : List.copyOf(byId.values())) {
      final Segment segment = takeBack(borrower, lent.id);
      if (segment != null) {
        back.add(segment);
      }
    }
    return back;
  }

  /** Takes back everything; the caller closes it. */
  List<Segment> takeBackAll() {
    final List<Segment> back = new ArrayList<>();
    for (final long borrower : List.copyOf(byBorrower.keySet())) {
      back.addAll(takeBackAll(borrower));
    }
    return back;
  }

  private static final class Lent {
    private final long id;
    private final long borrower;
    private final Segment segment;
    private boolean recalled;

    Lent(final long id, final long borrower, final Segment segment) {
      this.id = id;
      this.borrower = borrower;
      this.segment = segment;
    }
  }
}
