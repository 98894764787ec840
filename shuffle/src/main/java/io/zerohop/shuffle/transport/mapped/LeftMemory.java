package io.zerohop.shuffle.transport.mapped;

import io.zerohop.device.Device;
import io.zerohop.device.PeerAccess;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.PeerLink.Loan;
import io.zerohop.device.exchange.SegmentServer.PeerInfo;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.FdHandle;
import io.zerohop.shuffle.catalog.CatalogView;
import io.zerohop.shuffle.catalog.CatalogView.RootView;
import io.zerohop.shuffle.catalog.CatalogView.ShuffleView;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.mapped.PeerDirectory.Greeting;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The memory that an executor has left, as its keeper serves it. Nobody writes to it any more; only
 * the root is the keeper's own copy, since readers write to its lanes and the keeper takes dropped
 * shuffles off its list. Owns the root and the descriptors. Thread safe.
 */
final class LeftMemory implements SegmentDirectory, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(LeftMemory.class);

  private final Device device;
  private final String owner;
  private final Greeting greeting;
  private final RootSegment root;
  private final RootView view;
  private final Map<Long, SegmentHandle> held;
  private final Map<Long, Integer> laneBlocks = new ConcurrentHashMap<>();

  /** Ids of the map outputs that readers find whole, by shuffle. */
  private Map<Integer, Set<Long>> outputs = Map.of();

  /**
   * Takes over the descriptors.
   *
   * @param owner names the executor in messages
   * @param greeting of the executor
   * @param ended its root, which nobody writes any more and the caller closes
   */
  LeftMemory(
      final Device device,
      final String owner,
      final Greeting greeting,
      final SegmentMemory ended,
      final Map<Long, SegmentHandle> held) {
    this.device = device;
    this.owner = owner;
    this.greeting = greeting;
    this.held = held;
    root = new RootSegment(device, greeting.incarnation(), ended, held.keySet());
    boolean done = false;
    try {
      root.lanes().freeze();
      view = new RootView(root.memory(), greeting.incarnation(), owner);
      closeUnused();
      done = true;
    } finally {
      if (!done) {
        root.close();
      }
    }
  }

  /** Ids of the map outputs that readers find whole, by shuffle; none has no output. */
  synchronized Map<Integer, Set<Long>> outputs() {
    return outputs;
  }

  /** Bytes of all segments. */
  synchronized long bytes() {
    return held.values().stream().mapToLong(SegmentHandle::bytes).sum();
  }

  /** Forgets a shuffle, and closes the segments in which nothing else lies. */
  void drop(final int shuffleId) {
    root.unlist(shuffleId);
    closeUnused();
  }

  private synchronized void closeUnused() {
    final Set<Long> used = used();
    held.entrySet()
        .removeIf(
            entry -> {
              if (used.contains(entry.getKey())) {
                return false;
              }
              root.retire(entry.getKey());
              entry.getValue().close();
              return true;
            });
  }

  /** The segments in which something lies; a shuffle with no whole output is forgotten. */
  private Set<Long> used() {
    final Map<Long, SegmentMemory> mapped = new HashMap<>();
    final Set<Long> used = new HashSet<>();
    final Map<Integer, Set<Long>> found = new HashMap<>();
    try {
      final CatalogView catalog =
          new CatalogView(
              view, id -> mapped.computeIfAbsent(id, this::map), owner, greeting.incarnation());
      for (final int shuffleId : view.shuffles()) {
        final Map<Long, Set<Long>> whole = wholeOutputs(catalog, shuffleId);
        if (whole.isEmpty()) {
          root.unlist(shuffleId);
        } else {
          whole.values().forEach(used::addAll);
          found.put(shuffleId, Set.copyOf(whole.keySet()));
        }
      }
      outputs = Map.copyOf(found);
      return used;
    } finally {
      mapped.values().forEach(SegmentMemory::close);
    }
  }

  private Map<Long, Set<Long>> wholeOutputs(final CatalogView catalog, final int shuffleId) {
    try {
      final ShuffleView shuffle = catalog.shuffle(shuffleId);
      final Map<Long, Set<Long>> whole = shuffle == null ? new HashMap<>() : shuffle.outputs();
      whole.values().removeIf(segments -> !held.keySet().containsAll(segments));
      return whole;
    } catch (final ZerohopException e) {
      LOG.info("shuffle {} of executor {} is not kept: {}", shuffleId, owner, e.getMessage());
      return Map.of();
    }
  }

  private @Nullable SegmentMemory map(final long segmentId) {
    final SegmentHandle handle = held.get(segmentId);
    return handle == null || SegmentIds.tier(segmentId) != Tier.HOST
        ? null
        : new SegmentMemory(
            segmentId, device.map(copyOf(handle), "executor " + owner, PeerAccess.READ));
  }

  @Override
  public byte[] connected(final PeerInfo peer) {
    final int block = root.lanes().connect();
    final long generation = block < 0 ? 0 : root.lanes().generation(block);
    if (block >= 0) {
      laneBlocks.put(peer.connectionId(), block);
    }
    return new Greeting(
            block, generation, root.memory().id(), greeting.incarnation(), greeting.view())
        .encode();
  }

  @Override
  public synchronized @Nullable SegmentHandle export(final long segmentId) {
    if (segmentId == root.memory().id()) {
      return root.memory().segment().export();
    }
    final SegmentHandle handle = held.get(segmentId);
    return handle == null ? null : copyOf(handle);
  }

  /** Returns a second handle, for the caller to close. */
  private static SegmentHandle copyOf(final SegmentHandle handle) {
    return new FdHandle(Descriptor.duplicate(handle.fd()), handle.bytes());
  }

  @Override
  public @Nullable Loan lend(final PeerInfo peer, final long bytes) {
    return null;
  }

  @Override
  public void returned(final PeerInfo peer, final long segmentId) {
    // Nothing is lent.
  }

  @Override
  public void failed(final Throwable cause) {
    // Nothing here changes; readers keep what they have mapped.
  }

  @Override
  public void disconnected(final PeerInfo peer) {
    final Integer block = laneBlocks.remove(peer.connectionId());
    if (block != null) {
      root.lanes().disconnect(block);
    }
  }

  @Override
  public synchronized void close() {
    held.values().forEach(SegmentHandle::close);
    held.clear();
    root.close();
  }
}
