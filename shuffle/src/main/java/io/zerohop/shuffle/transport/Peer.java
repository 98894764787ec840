package io.zerohop.shuffle.transport;

import io.zerohop.device.Device;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.exchange.ExchangeException;
import io.zerohop.device.exchange.PeerLink;
import io.zerohop.shuffle.Path;
import io.zerohop.shuffle.catalog.CatalogException;
import io.zerohop.shuffle.catalog.CatalogView;
import io.zerohop.shuffle.catalog.LanePool;
import io.zerohop.shuffle.catalog.RootView;
import io.zerohop.shuffle.pool.LeaseBarrier;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;

/**
 * A connected peer and what is mapped of its memory. Segments are mapped when first met and kept;
 * they are unmapped when the owner retired them, or the peer is lost, and no reader here can still
 * see them. Thread safe.
 */
final class Peer implements BlockMemory {
  private final String name;
  private final PeerLink link;
  private final Device device;
  private final Device blockDevice;
  private final Duration limit;
  private final Predicate<RootView> ownerGone;
  private final SegmentMemory rootMemory;
  private final RootView root;
  private final LanePool lanes;
  private final CatalogView catalog;
  private final AtomicReferenceArray<SegmentMemory> mapped =
      new AtomicReferenceArray<>(SegmentIds.MAX_SLOTS);
  private final AtomicInteger mappings = new AtomicInteger();

  /** Held while a segment is mapped, which may take as long as the peer lets it. */
  private final ReentrantLock mapping = new ReentrantLock();

  private final List<Retired> retired = new ArrayList<>();
  private boolean unmapped;
  private volatile boolean brokenHere;

  /**
   * Takes over the link.
   *
   * @param name names the owner in messages
   * @param ownerGone finds out, in a limited time, whether the owner of this root is dead
   */
  Peer(
      final String name,
      final PeerLink link,
      final Greeting greeting,
      final Device device,
      final Device blockDevice,
      final Duration limit,
      final Predicate<RootView> ownerGone) {
    this.name = name;
    this.link = link;
    this.device = device;
    this.blockDevice = blockDevice;
    this.limit = limit;
    this.ownerGone = ownerGone;
    this.rootMemory = fetch(greeting.rootSegment(), device);
    if (rootMemory == null) {
      throw new CatalogException("executor " + name + " has no root segment");
    }
    boolean done = false;
    try {
      this.root = new RootView(rootMemory, greeting.incarnation(), name);
      this.lanes = new LanePool(rootMemory, greeting.laneBlock(), link::alive);
      this.catalog = new CatalogView(root, id -> segment(id, device), name, greeting.incarnation());
      done = true;
    } finally {
      if (!done) {
        rootMemory.segment().close();
      }
    }
    mappings.set(1);
  }

  @Override
  public Path path() {
    return Path.PEER;
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
  public SegmentMemory blockSegment(final long segmentId) {
    return segment(segmentId, blockDevice);
  }

  private SegmentMemory segment(final long segmentId, final Device on) {
    final SegmentMemory known = mapped.get(SegmentIds.slot(segmentId));
    return known != null && known.id() == segmentId ? known : map(segmentId, on);
  }

  /** Callers hold a lease, so nothing of this peer is unmapped meanwhile. */
  private SegmentMemory map(final long segmentId, final Device on) {
    mapping.lock(); // Those in front are bounded by the link, which a time-out closes.
    try {
      final int slot = SegmentIds.slot(segmentId);
      final SegmentMemory known = mapped.get(slot);
      if (known != null && known.id() == segmentId) {
        return known;
      }
      final SegmentMemory memory = fetch(segmentId, on);
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

  private SegmentMemory fetch(final long segmentId, final Device on) {
    final SegmentHandle handle;
    try {
      handle = link.fetch(segmentId, limit);
    } catch (final ExchangeException e) {
      if (e.reason() != ExchangeException.Reason.CLOSED) {
        // The link was closed on this side: the owner may live on and drop our leases.
        brokenHere = true;
      }
      throw e;
    }
    return handle == null ? null : new SegmentMemory(segmentId, on.map(handle));
  }

  /** Whether the owner is there. */
  boolean connected() {
    return link.alive();
  }

  @Override
  public boolean intact() {
    return link.alive() || (!brokenHere && ownerGone.test(root));
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
    if (!mapping.tryLock()) {
      return false;
    }
    try {
      if (!unmapped && !link.alive() && lanes.openLeases() == 0) {
        unmapAll(); // No lease can begin any more, see LanePool.take.
      }
      if (!unmapped) {
        unmapRetired();
      }
      return unmapped;
    } finally {
      mapping.unlock();
    }
  }

  private void unmapRetired() {
    for (int slot = 0; slot < mapped.length(); slot++) {
      final SegmentMemory memory = mapped.get(slot);
      if (memory != null && !root.inUse(memory.id())) {
        mapped.set(slot, null);
        retired.add(new Retired(memory, lanes.snapshot()));
      }
    }
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
    unmapped = true;
  }

  private void unmap(final SegmentMemory memory) {
    memory.segment().close();
    mappings.decrementAndGet();
  }

  /** Segments that are mapped, the root included. */
  int mappings() {
    return mappings.get();
  }

  /** Ends the connection; {@link #sweep} unmaps. */
  void disconnect() {
    brokenHere = true;
    link.close();
  }

  @Override
  public String toString() {
    return "peer " + name;
  }

  private record Retired(SegmentMemory memory, LeaseBarrier.Snapshot readers) {}
}
