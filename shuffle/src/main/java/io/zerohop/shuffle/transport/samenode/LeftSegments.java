package io.zerohop.shuffle.transport.samenode;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Device;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FdHandle;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.pool.Reclaimer.LeaseBarrier.Snapshot;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The segments that an executor has left, by their descriptors. One in which nothing lies any more
 * is closed, but not while readers may look for what is in a file now. Of GPU memory there may be
 * copies in host memory, for who has no GPU. Owns the descriptors and the copies. Thread safe.
 */
final class LeftSegments implements AutoCloseable {
  private final Device device;
  private final String owner;
  private final RootSegment root;

  @GuardedBy("this")
  private final Map<Long, SegmentHandle> held;

  private final HostCopies copies;

  /** Memory of what is in files now, as long as readers may look for it. */
  @GuardedBy("this")
  private final List<Leaving> leaving = new ArrayList<>();

  @GuardedBy("this")
  private long leavingBytes;

  @GuardedBy("this")
  private boolean hasFreed;

  @GuardedBy("this")
  private long sharedSegments;

  @GuardedBy("this")
  private long sharedBytes;

  /** Segments, and the leases that were open when what lies there was in files. */
  private record Leaving(Set<Long> segments, Snapshot leases) {}

  /**
   * Takes over the descriptors.
   *
   * @param owner names the executor in messages
   * @param root names the segments, and has the leases; stays the caller's
   * @param copies of GPU memory, closed with the segments
   */
  LeftSegments(
      final Device device,
      final String owner,
      final RootSegment root,
      final Map<Long, SegmentHandle> held,
      final HostCopies copies) {
    this.device = device;
    this.owner = owner;
    this.root = root;
    this.held = held;
    this.copies = copies;
  }

  synchronized boolean containsAll(final Collection<Long> segments) {
    return held.keySet().containsAll(segments);
  }

  /** Bytes of all that are held, and of copies. */
  synchronized long bytes() {
    return held.values().stream().mapToLong(SegmentHandle::bytes).sum() + copies.bytes();
  }

  /** Whether some of it is a GPU's memory. */
  synchronized boolean isOnGpu() {
    return held.keySet().stream().anyMatch(id -> SegmentIds.tier(id) == Tier.DEVICE);
  }

  /** Those of some segments that cannot be mapped here, and their bytes. */
  synchronized Map<Long, Long> notHere(final Collection<Long> segments) {
    final Map<Long, Long> found = new HashMap<>();
    for (final long id : segments) {
      final SegmentHandle handle = held.get(id);
      if (handle != null && SegmentIds.tier(id) != Tier.HOST && !copies.has(id)) {
        found.put(id, handle.bytes());
      }
    }
    return found;
  }

  /**
   * Takes host memory for a copy of GPU memory.
   *
   * @param copy as large as the segment; closed here if that is no longer held
   */
  synchronized void addCopy(final long segmentId, final Segment copy) {
    if (held.containsKey(segmentId)) {
      copies.add(segmentId, copy);
    } else {
      copy.close(); // What lay there was dropped meanwhile.
    }
  }

  /** Keeps segments as long as readers have leases that are open now. */
  synchronized void leave(final Set<Long> segments) {
    leaving.add(new Leaving(segments, root.lanes().snapshot()));
  }

  /** Whether leases have ended that kept segments at the last {@link #retain}. */
  synchronized boolean canGo() {
    return leaving.stream().anyMatch(one -> one.leases.passed());
  }

  /** Closes all but those that are used, and those that leases keep. */
  synchronized void retain(final Set<Long> used) {
    leaving.removeIf(one -> one.leases.passed());
    final Set<Long> lookedFor = new HashSet<>();
    leaving.forEach(one -> lookedFor.addAll(one.segments));
    leavingBytes = 0;
    for (final Iterator<Map.Entry<Long, SegmentHandle>> all = held.entrySet().iterator();
        all.hasNext(); ) {
      final Map.Entry<Long, SegmentHandle> segment = all.next();
      if (used.contains(segment.getKey())) {
        continue;
      }
      if (lookedFor.contains(segment.getKey())) {
        leavingBytes += segment.getValue().bytes();
        copies.close(segment.getKey());
      } else {
        root.retire(segment.getKey());
        segment.getValue().close();
        copies.close(segment.getKey());
        all.remove();
        hasFreed = true;
      }
    }
  }

  /** Bytes that go as soon as those who read have ended. */
  synchronized long leavingBytes() {
    return leavingBytes;
  }

  /** Returns whether some were closed since the last call. */
  synchronized boolean takeFreed() {
    final boolean was = hasFreed;
    hasFreed = false;
    return was;
  }

  /**
   * Maps one of host memory, or the copy of one of GPU memory, for the caller to close; absent if
   * it is not held, or not copied.
   */
  synchronized @Nullable SegmentMemory map(final long segmentId) {
    final SegmentHandle handle = held.get(segmentId);
    final SegmentHandle here =
        handle != null && SegmentIds.tier(segmentId) == Tier.HOST
            ? copyOf(handle)
            : copies.export(segmentId);
    return here == null
        ? null
        : new SegmentMemory(segmentId, device.map(here, "executor " + owner, PeerAccess.READ));
  }

  /** Returns a descriptor for who copies it, which the caller closes; absent if it is not held. */
  synchronized @Nullable SegmentHandle exportToCopier(final long segmentId) {
    final SegmentHandle handle = held.get(segmentId);
    return handle == null ? null : copyOf(handle);
  }

  /** Returns a descriptor for a reader, which the caller closes; absent if it is not held. */
  synchronized @Nullable SegmentHandle export(final long segmentId) {
    final SegmentHandle handle = held.get(segmentId);
    if (handle == null) {
      return null;
    }
    sharedSegments++;
    sharedBytes += handle.bytes();
    return copyOf(handle);
  }

  private static SegmentHandle copyOf(final SegmentHandle handle) {
    return new FdHandle(Descriptor.duplicate(handle.fd()), handle.bytes());
  }

  /** Segments whose descriptors readers got, also after the end. */
  synchronized long sharedSegments() {
    return sharedSegments;
  }

  /** Their bytes. */
  synchronized long sharedBytes() {
    return sharedBytes;
  }

  @Override
  public synchronized void close() {
    held.keySet().forEach(copies::close);
    held.values().forEach(SegmentHandle::close);
    held.clear();
  }
}
