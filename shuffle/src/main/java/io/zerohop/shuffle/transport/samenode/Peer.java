package io.zerohop.shuffle.transport.samenode;

import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Topology;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.ZerohopException.Category;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.BlockPath;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.catalog.CatalogView;
import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.catalog.LaneTable.LanePool;
import io.zerohop.shuffle.catalog.RootSegment.RootLayout;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.pool.Reclaimer.LeaseBarrier;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.BlockMemory;
import io.zerohop.shuffle.transport.samenode.PeerDirectory.Greeting;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A connected peer and what is mapped of its memory. Segments are mapped ahead, or when first met,
 * and kept; they are unmapped when the owner retired them, or the peer is lost, and no reader here
 * can still see them. Thread safe.
 */
final class Peer implements BlockMemory {
  private static final Logger LOG = LoggerFactory.getLogger(Peer.class);
  private static final Duration REFUSED = Duration.ofSeconds(30);

  /** Of what no reader waits for: they use the same connection, as do loans of other peers. */
  private static final Duration BRIEF = Duration.ofMillis(500);

  /** Short, since one descriptor that becomes free is enough; long beside the time of an answer. */
  private static final Duration UNAVAILABLE = Duration.ofSeconds(1);

  private final String name;
  private final PeerLink link;
  private final boolean left;
  private final Topology.View view;
  private final Link toGpu;
  private final Devices devices;
  private final Duration limit;
  private final Clock clock;
  private final SegmentMemory rootMemory;
  private final RootView root;
  private final LanePool lanes;
  private final CatalogView catalog;
  private final AtomicReferenceArray<SegmentMemory> mapped =
      new AtomicReferenceArray<>(SegmentIds.MAX_SLOTS);
  private final AtomicInteger mappings = new AtomicInteger();

  /**
   * Segments that could not be handed over, or that this peer borrows and that cannot be mapped, by
   * their ids: not asked for again for a moment.
   */
  private final Map<Long, Refusal> unavailable = new ConcurrentHashMap<>();

  /** Held while a segment is mapped, which may take as long as the peer lets it. */
  private final ReentrantLock mapping = new ReentrantLock();

  private final List<Retired> retired = new ArrayList<>();
  private boolean unmapped;

  /** Why the owner's own GPU memory cannot be mapped here, as it was found out last. */
  private volatile @Nullable Refusal gpuRefusal;

  /** The same of what it lends. */
  private volatile @Nullable Refusal loanRefusal;

  /**
   * Takes over the link.
   *
   * @param name names the owner in messages
   * @param left whether the link is to a keeper, and the owner has ended
   * @param toGpu how its GPU's memory is reached
   */
  Peer(
      final String name,
      final boolean left,
      final PeerLink link,
      final Greeting greeting,
      final Link toGpu,
      final Devices devices,
      final Duration limit,
      final Clock clock) {
    this.name = name;
    this.left = left;
    this.link = link;
    this.view = greeting.view();
    this.toGpu = toGpu;
    this.devices = devices;
    this.limit = limit;
    this.clock = clock;
    final SegmentHandle handle = handleTo(greeting.rootSegment(), limit);
    if (handle == null) {
      throw new CatalogException("executor " + name + " has no root segment");
    }
    // The one segment that readers write to: it has their lanes.
    this.rootMemory =
        new SegmentMemory(greeting.rootSegment(), map(handle, Tier.HOST, PeerAccess.WRITE));
    try (Undo undo = new Undo(rootMemory)) {
      this.root = new RootView(rootMemory, greeting.incarnation(), name);
      this.lanes =
          new LanePool(
              RootLayout.lanes(rootMemory),
              greeting.laneBlock(),
              greeting.generation(),
              link::alive,
              clock);
      this.catalog = new CatalogView(root, this::catalogSegment, name, greeting.incarnation());
      undo.done();
    }
    mappings.set(1);
  }

  @Override
  public BlockPath path() {
    return BlockPath.PEER;
  }

  @Override
  public Link link(final Tier tier) {
    return tier == Tier.DEVICE ? toGpu : Link.PEER_HOST;
  }

  @Override
  public LanePool lanes() {
    return lanes;
  }

  @Override
  public CatalogView catalog() {
    return catalog;
  }

  @Override
  public @Nullable SegmentMemory blockSegment(final long segmentId) {
    final SegmentMemory known = mapped.get(SegmentIds.slot(segmentId));
    return known != null && known.id() == segmentId ? known : map(segmentId, limit);
  }

  /** The host reads catalogs itself: an id of another tier can only be damage. */
  private @Nullable SegmentMemory catalogSegment(final long segmentId) {
    return SegmentIds.tier(segmentId) == Tier.HOST ? blockSegment(segmentId) : null;
  }

  /** Readers hold a lease, so nothing that they find is unmapped meanwhile. */
  private @Nullable SegmentMemory map(final long segmentId, final Duration wait) {
    mapping.lock(); // One in front waits for its limit at most, the others then not at all.
    try {
      if (unmapped) {
        return null;
      }
      final int slot = SegmentIds.slot(segmentId);
      final SegmentMemory known = mapped.get(slot);
      if (known != null && known.id() == segmentId) {
        return known;
      }
      final SegmentMemory memory = fetch(segmentId, SegmentIds.tier(segmentId), wait);
      if (memory != null) {
        if (known != null) {
          retired.add(new Retired(known, lanes.snapshot()));
        }
        mapped.set(slot, memory);
        mappings.incrementAndGet();
      }
      return memory;
    } finally {
      mapping.unlock();
    }
  }

  /**
   * Maps what the owner has not been asked for yet, so that readers find it mapped. What cannot be
   * mapped is left to them. Takes a limited time for each segment.
   */
  void mapAhead() {
    for (final long segmentId : notMapped()) {
      if (lanes.openLeases() > 0 || link.isSilent()) {
        return; // Readers ask for what they need, and must not wait behind this if the peer pauses.
      }
      try {
        map(segmentId, BRIEF);
      } catch (final ZerohopException e) {
        LOG.debug("segment {} of executor {} is not mapped ahead", segmentId, name, e);
      }
    }
  }

  private List<Long> notMapped() {
    final List<Long> missing = new ArrayList<>();
    mapping.lock();
    try {
      for (int slot = 0; slot < mapped.length() && !unmapped && link.alive(); slot++) {
        final long id = root.inSlot(slot);
        final SegmentMemory known = mapped.get(slot);
        if (id > 0
            && !SegmentIds.isLent(id)
            && id != rootMemory.id()
            && (known == null || known.id() != id)) {
          missing.add(id);
        }
      }
    } finally {
      mapping.unlock();
    }
    return missing;
  }

  private @Nullable SegmentMemory fetch(
      final long segmentId, final @Nullable Tier tier, final Duration wait) {
    if (tier == null) {
      return null;
    }
    final boolean isBorrowed = devices.hasGpu() && SegmentIds.isBorrowed(segmentId);
    final boolean isOnItsGpu = tier == Tier.DEVICE && !isBorrowed;
    throwIfNow(isOnItsGpu ? gpuRefusal : null);
    final SegmentHandle handle = handleTo(segmentId, wait);
    if (handle == null) {
      return null;
    }
    // A GPU reaches blocks only in memory that is mapped for writing, where the owner allows it.
    final PeerAccess access = devices.hasGpu() ? handle.access() : PeerAccess.READ;
    try {
      final Segment segment = map(handle, tier, access);
      if (isOnItsGpu) {
        devices.peerGpus().mapped(this);
      }
      return new SegmentMemory(segmentId, segment);
    } catch (final ZerohopException e) {
      if (tier == Tier.DEVICE && e.category() == Category.FALLBACK) {
        refuse(segmentId, isBorrowed, e);
      }
      throw e;
    }
  }

  /** What holds for one segment on the owner's GPU holds for all there; not for what it borrows. */
  private void refuse(
      final long segmentId, final boolean isBorrowed, final ZerohopException cause) {
    final Refusal refusal = new Refusal(clock.in(REFUSED), cause); // The GPU may have been full.
    if (!isBorrowed) {
      gpuRefusal = refusal;
      if (devices.hasGpu()) {
        devices.peerGpus().refused(this);
      }
    } else if (unavailable.put(segmentId, refusal) != null) {
      return;
    }
    ShuffleCode.GPU_NOT_MAPPED
        .says("a peer's GPU memory cannot be read in place; its GPU blocks are sent or staged")
        .at((isBorrowed ? "borrowed segment " + segmentId + " of " : "") + "executor " + name)
        .because(cause)
        .warn(LOG);
  }

  private void throwIfNow(final @Nullable Refusal refusal) {
    if (refusal != null && isNow(refusal)) {
      throw refusal.cause;
    }
  }

  private boolean isNow(final @Nullable Refusal refusal) {
    return refusal != null && !clock.isOver(refusal.until);
  }

  /** A segment that is not available is one segment less, and no reason to lose the others. */
  private @Nullable SegmentHandle handleTo(final long segmentId, final Duration wait) {
    throwIfNow(unavailable.get(segmentId));
    try {
      return link.fetch(segmentId, wait);
    } catch (final ExchangeException e) {
      final boolean mayCome = link.isSilent() && wait.compareTo(limit) < 0; // Readers wait longer.
      if (e.reason() == ExchangeException.Reason.UNAVAILABLE
          && !mayCome
          && unavailable.put(segmentId, new Refusal(clock.in(UNAVAILABLE), e)) == null) {
        ShuffleCode.SEGMENT_UNAVAILABLE
            .says("a peer did not export a segment; its blocks are staged")
            .at("segment " + segmentId + " of executor " + name)
            .because(e)
            .warn(LOG);
      }
      throw e;
    }
  }

  private Segment map(final SegmentHandle handle, final Tier tier, final PeerAccess access) {
    try (handle) {
      return devices.of(tier).map(handle, "executor " + name, access);
    }
  }

  /**
   * Returns how many bytes it would lend, by memory that is worth it: on this executor's GPU or
   * over NVLink, and if it can be mapped. Does not wait.
   */
  long lendable() {
    final boolean near = toGpu == Link.PEER_NVLINK || toGpu == Link.PEER_GPU;
    final boolean refused = isNow(gpuRefusal) || isNow(loanRefusal);
    return !near || refused || link.isSilent()
        ? 0
        : unlessMapping(0L, () -> unmapped || !link.alive() ? 0 : root.lendable());
  }

  /**
   * Runs something with the mapping lock, unless another thread has that. Does not wait. Unmaps
   * nothing by itself: an action that does has to make sure that no lease is open.
   */
  private <T> T unlessMapping(final T otherwise, final Supplier<T> action) {
    if (!mapping.tryLock()) {
      return otherwise;
    }
    try {
      return action.get();
    } finally {
      mapping.unlock();
    }
  }

  /** Whether its memory is on this executor's own GPU. */
  boolean isOnSameGpu() {
    return toGpu == Link.PEER_GPU;
  }

  /**
   * Borrows a segment. Waits a limited time.
   *
   * @return the segment, for the caller to close before it calls {@link #giveBack}; absent if none
   *     is lent
   * @throws ZerohopException if the peer does not answer, or its memory cannot be mapped
   */
  @Nullable Borrowed borrow(final long bytes) {
    final PeerLink.Loan loan = link.borrow(bytes, BRIEF);
    if (loan == null) {
      return null;
    }
    try (Undo undo = new Undo(() -> giveBack(loan.segmentId()));
        SegmentHandle handle = loan.handle()) {
      final Segment segment = devices.of(Tier.DEVICE).borrow(handle, "executor " + name);
      return undo.keep(new Borrowed(loan.segmentId(), segment));
    } catch (final ZerohopException e) {
      loanRefusal = new Refusal(clock.in(REFUSED), e); // Says nothing of what is read here.
      throw e;
    }
  }

  /**
   * Tells the peer that a segment is not used here any more, now or by a later {@link #settle}.
   * Waits a limited time.
   */
  void giveBack(final long loanId) {
    link.giveBack(loanId, BRIEF);
  }

  /** See {@link PeerLink#settle}. Waits a limited time. */
  void settle() {
    link.settle(BRIEF);
  }

  /**
   * Returns whether the peer wants a segment back, or has ended. Does not wait: false while a
   * segment is being mapped.
   */
  boolean recalls(final long loanId) {
    return unlessMapping(false, () -> unmapped || !link.alive() || !root.inUse(loanId));
  }

  /** The owner and its GPU. */
  Topology.View view() {
    return view;
  }

  @Override
  public boolean isLeft() {
    return left;
  }

  @Override
  public boolean alive() {
    return link.alive();
  }

  /**
   * The lanes know, not the link: {@link PeerLink#alive} turns false when the thread that watches
   * all links runs, and by then the owner may have used the memory again.
   */
  @Override
  public boolean intact() {
    return lanes.intact();
  }

  void forget(final int shuffleId) {
    catalog.forget(shuffleId);
  }

  /**
   * Unmaps what nobody here can read any more. Does not wait: while a segment is being mapped it
   * leaves the work to the next call.
   *
   * @return true when the peer is lost and nothing of it is mapped any more
   */
  boolean sweep() {
    return unlessMapping(
        false,
        () -> {
          if (!unmapped && !link.alive() && lanes.openLeases() == 0) {
            unmapAll(); // No lease can begin any more, see LanePool.take.
          }
          if (!unmapped) {
            unmapRetired();
          }
          return unmapped;
        });
  }

  /**
   * Unmaps what the owner has retired, but not what it retires after its end.
   *
   * <p>That stays mapped until the connection is lost here: leases may be taken until then, and
   * what was remembered of the catalog counts, since the list of shuffles stays as it is. The owner
   * says that it has ended before it retires anything for that reason. So the look at its end comes
   * second: who finds such a segment retired finds the end, too.
   */
  private void unmapRetired() {
    for (int slot = 0; slot < mapped.length(); slot++) {
      final SegmentMemory memory = mapped.get(slot);
      if (memory != null && !root.inUse(memory.id()) && !root.isEnded()) {
        mapped.set(slot, null);
        retired.add(new Retired(memory, lanes.snapshot()));
      }
    }
    unavailable.keySet().removeIf(id -> !root.inUse(id));
    retired.removeIf(
        old -> {
          if (old.readers.passed()) {
            unmap(old.memory);
            return true;
          }
          return false;
        });
  }

  private void unmapAll() {
    for (int slot = 0; slot < mapped.length(); slot++) {
      final SegmentMemory memory = mapped.getAndSet(slot, null);
      if (memory != null) {
        unmap(memory);
      }
    }
    retired.forEach(old -> unmap(old.memory));
    retired.clear();
    unmap(rootMemory);
    devices.peerGpus().lost(this);
    unmapped = true;
  }

  private void unmap(final SegmentMemory memory) {
    memory.close();
    mappings.decrementAndGet();
  }

  /** Segments that are mapped, the root included. */
  int mappings() {
    return mappings.get();
  }

  /** Ends the connection; {@link #sweep} unmaps. */
  void disconnect() {
    link.close();
  }

  @Override
  public String toString() {
    return "peer " + name;
  }

  /**
   * Memory that a peer lends.
   *
   * @param id the peer's name for it
   */
  record Borrowed(long id, Segment segment) {}

  private record Refusal(long until, ZerohopException cause) {}

  private record Retired(SegmentMemory memory, LeaseBarrier.Snapshot readers) {}
}
