package io.zerohop.shuffle.transport.samenode;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Crc32c;
import io.zerohop.device.Device;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.OncePerKey;
import io.zerohop.device.exchange.PeerLink.Loan;
import io.zerohop.device.exchange.SegmentServer.PeerInfo;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.catalog.CatalogView;
import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.catalog.CatalogView.ShuffleView;
import io.zerohop.shuffle.catalog.EntryCursor;
import io.zerohop.shuffle.catalog.RootSegment;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.log.ShuffleCode;
import io.zerohop.shuffle.pool.SegmentIds;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.SegmentResolver;
import io.zerohop.shuffle.pool.Tier;
import io.zerohop.shuffle.transport.samenode.PeerDirectory.Greeting;
import io.zerohop.shuffle.transport.samenode.SharedMemory.PeerLanes;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The memory that an executor has left, as its keeper serves it. Nobody writes to it any more; only
 * the root is the keeper's own copy, since readers write to its lanes and the keeper takes shuffles
 * off its list that are dropped, or in files. Those are read by asking the keeper. Owns the root,
 * the segments and the files. Thread safe.
 */
public final class LeftMemory implements SegmentDirectory, LeftBlocks, AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(LeftMemory.class);

  private final Clock clock;
  private final String owner;
  private final Greeting greeting;
  private final RootSegment root;
  private final RootView view;
  private final LeftSegments segments;
  private final PeerLanes lanes;

  /** Segments that are mapped to read their blocks here. */
  private final Map<Long, SegmentMemory> mapped = new HashMap<>();

  /** Over what is mapped; absent while nothing is. */
  private @Nullable CatalogView catalog;

  private boolean wasRead;

  /** What is there, in memory or in files. */
  private final Map<Integer, Left> shuffles = new ConcurrentHashMap<>();

  /** Map outputs whose blocks could not be read, as the log says once for each. */
  private final OncePerKey unread = new OncePerKey();

  /** What is in files, by shuffle. */
  private final Map<Integer, LeftFile> files = new ConcurrentHashMap<>();

  @GuardedBy("this")
  private int lanesTaken;

  @GuardedBy("this")
  private long readAt;

  /**
   * A shuffle.
   *
   * @param maps ids of the map outputs that readers find whole
   * @param segments in which something of them lies, while they are in memory
   */
  private record Left(Set<Long> maps, Set<Long> segments) {
    boolean isOnHost() {
      return segments.stream().allMatch(id -> SegmentIds.tier(id) == Tier.HOST);
    }
  }

  /**
   * Takes over the descriptors.
   *
   * @param owner names the executor in messages
   * @param greeting of the executor
   * @param ended its root, which nobody writes any more and the caller closes
   * @param held its descriptors; the caller's if this fails
   * @throws ZerohopException if it cannot be looked at now
   */
  LeftMemory(
      final Device device,
      final String owner,
      final Greeting greeting,
      final SegmentMemory ended,
      final Map<Long, SegmentHandle> held,
      final Clock clock) {
    this.clock = clock;
    this.readAt = clock.nanos();
    this.owner = owner;
    this.greeting = greeting;
    root = new RootSegment(device, greeting.incarnation(), ended, held.keySet());
    segments = new LeftSegments(device, owner, root, held);
    lanes = new PeerLanes(root, greeting.view());
    try (Undo undo = new Undo(root)) {
      undo.add(this::unmap);
      root.lanes().freeze();
      view = new RootView(root.memory(), greeting.incarnation(), owner);
      look();
      closeUnused();
      undo.done();
    }
  }

  /** Finds what is there, once: nothing comes any more, and what goes is dropped. */
  private void look() {
    for (final int shuffleId : view.shuffles()) {
      final Map<Long, Set<Long>> whole = wholeOutputs(shuffleId);
      if (whole.isEmpty()) {
        root.unlist(shuffleId);
      } else {
        final Set<Long> all = new HashSet<>();
        whole.values().forEach(all::addAll);
        shuffles.put(shuffleId, new Left(Set.copyOf(whole.keySet()), all));
      }
    }
  }

  /** What is damaged is left out; any other failure is thrown, since it may pass. */
  private synchronized Map<Long, Set<Long>> wholeOutputs(final int shuffleId) {
    try {
      final ShuffleView shuffle = catalog().shuffle(shuffleId);
      final Map<Long, Set<Long>> whole = shuffle == null ? new HashMap<>() : shuffle.outputs();
      whole.values().removeIf(ids -> !segments.containsAll(ids));
      return whole;
    } catch (final CatalogException e) {
      LOG.info("shuffle {} of executor {} is not kept: {}", shuffleId, owner, e.getMessage());
      return Map.of();
    }
  }

  /** Ids of the map outputs that readers find whole, by shuffle; none has no output. */
  Map<Integer, Set<Long>> outputs() {
    final Map<Integer, Set<Long>> outputs = new HashMap<>();
    shuffles.forEach((shuffleId, left) -> outputs.put(shuffleId, left.maps));
    return outputs;
  }

  /** The segments that it holds. */
  LeftSegments segments() {
    return segments;
  }

  /**
   * Forgets a shuffle, and closes the segments in which nothing else lies. Does nothing to one that
   * is gone, as all are once this is closed: a read that fails may end behind that.
   */
  synchronized void drop(final int shuffleId) {
    if (shuffles.remove(shuffleId) == null) {
      return;
    }
    root.unlist(shuffleId);
    final LeftFile file = files.remove(shuffleId);
    if (file != null) {
      file.close();
    }
    closeUnused();
  }

  private synchronized void closeUnused() {
    unmap();
    final Set<Long> used = new HashSet<>();
    shuffles.forEach(
        (shuffleId, left) -> used.addAll(files.containsKey(shuffleId) ? Set.of() : left.segments));
    segments.retain(used);
  }

  @GuardedBy("this")
  private CatalogView catalog() {
    CatalogView known = catalog;
    if (known == null) {
      known =
          new CatalogView(
              view, id -> mapped.computeIfAbsent(id, segments::map), owner, greeting.incarnation());
      catalog = known;
    }
    return known;
  }

  private synchronized void unmap() {
    catalog = null;
    mapped.values().forEach(SegmentMemory::close);
    mapped.clear();
  }

  /** Unmaps what nobody has read here since the last call. */
  public synchronized void unmapUnread() {
    if (!wasRead) {
      unmap();
    }
    wasRead = false;
  }

  /** How long nobody has read here, in nanoseconds. */
  synchronized long unreadNanos() {
    final int taken = root.lanes().taken();
    if (taken != lanesTaken) {
      lanesTaken = taken;
      readAt = clock.nanos();
    }
    return clock.since(readAt);
  }

  /** Whether a shuffle is here, and in no file. */
  boolean isInMemory(final int shuffleId) {
    return shuffles.containsKey(shuffleId) && !files.containsKey(shuffleId);
  }

  /** Shuffles that may be written to files, since none of their memory is a GPU's. */
  Stream<Integer> spillable() {
    return shuffles.entrySet().stream()
        .filter(shuffle -> isInMemory(shuffle.getKey()) && shuffle.getValue().isOnHost())
        .map(Map.Entry::getKey);
  }

  /** Ids of the map outputs in files, by shuffle. */
  Map<Integer, Set<Long>> outputsInFiles() {
    final Map<Integer, Set<Long>> found = outputs();
    found.keySet().retainAll(files.keySet());
    return found;
  }

  /** Forgets the shuffles that are not in files, and closes their segments. */
  synchronized void dropMemory() {
    shuffles.keySet().stream().filter(id -> !files.containsKey(id)).forEach(root::unlist);
    shuffles.keySet().retainAll(files.keySet());
    closeUnused();
  }

  /** Bytes in files. */
  public long fileBytes() {
    return files.values().stream().mapToLong(LeftFile::bytes).sum();
  }

  /** Map outputs in files. */
  public long fileOutputs() {
    return files.values().stream().mapToLong(LeftFile::outputs).sum();
  }

  /**
   * Returns what readers find of a shuffle; absent if it was dropped.
   *
   * @param resolver keeps segments mapped as long as the view is used
   */
  synchronized @Nullable ShuffleView view(final int shuffleId, final SegmentResolver resolver) {
    return shuffles.containsKey(shuffleId)
        ? new CatalogView(view, resolver, owner, greeting.incarnation()).shuffle(shuffleId)
        : null;
  }

  /**
   * Serves a shuffle from a file. Its memory goes once all who may look for it there have ended,
   * see {@link #settle}.
   *
   * @param file has all of the shuffle, and is this one's from now on
   */
  synchronized void moved(final int shuffleId, final LeftFile file) {
    final Left left = shuffles.get(shuffleId);
    if (left == null) {
      file.close(); // It was dropped meanwhile.
      return;
    }
    files.put(shuffleId, file);
    root.unlist(shuffleId);
    segments.leave(left.segments);
    closeUnused();
    LOG.info("shuffle {} of executor {} is in a file of {} bytes", shuffleId, owner, file.bytes());
  }

  /** Drops what is in a file that cannot be read, so that it is computed again. */
  void lost(final int shuffleId, final IOException cause) {
    drop(shuffleId);
    ShuffleCode.KEEPER_FILE_LOST
        .says("the keeper cannot read a file, so that what it has is computed again")
        .at("shuffle " + shuffleId + " of " + this)
        .because(cause)
        .warn(LOG, cause);
  }

  /**
   * Closes memory of what is in files, if nobody looks for it there.
   *
   * @return whether some has gone since the last call
   */
  public synchronized boolean settle() {
    if (segments.canGo()) {
      closeUnused();
    }
    return segments.takeFreed();
  }

  @Override
  public long bytes(final int shuffleId, final long mapId, final int partition) {
    final LeftFile file = files.get(shuffleId);
    if (file != null) {
      return file.bytes(mapId, partition);
    }
    final long bytes = bytesInMemory(shuffleId, mapId, partition);
    final LeftFile since = bytes < 0 ? files.get(shuffleId) : null; // It may just have moved.
    return since == null ? bytes : since.bytes(mapId, partition);
  }

  private synchronized long bytesInMemory(
      final int shuffleId, final long mapId, final int partition) {
    final long[] bytes = {0};
    final boolean isThere =
        forEachExtent(
            shuffleId, mapId, partition, (cursor, address) -> bytes[0] += cursor.length());
    return isThere ? bytes[0] : -1;
  }

  @Override
  public boolean read(
      final int shuffleId,
      final long mapId,
      final int partition,
      final long from,
      final ByteBuffer to) {
    final LeftFile file = files.get(shuffleId);
    if (file != null) {
      return file.read(mapId, partition, from, to);
    }
    final int position = to.position();
    if (readInMemory(shuffleId, mapId, partition, from, to)) {
      return true;
    }
    final LeftFile since = files.get(shuffleId); // It may just have moved.
    return since != null && since.read(mapId, partition, from, to.position(position));
  }

  @Override
  public boolean isInFile(final int shuffleId) {
    return files.containsKey(shuffleId);
  }

  private synchronized boolean readInMemory(
      final int shuffleId,
      final long mapId,
      final int partition,
      final long from,
      final ByteBuffer to) {
    final long[] behind = {from};
    final boolean[] isDamaged = {false};
    final boolean isThere =
        forEachExtent(
            shuffleId,
            mapId,
            partition,
            (cursor, address) -> {
              isDamaged[0] |=
                  from == 0
                      && cursor.checked()
                      && Crc32c.of(address, cursor.length()) != cursor.checksum();
              final long begin = behind[0];
              behind[0] = Math.max(0, begin - cursor.length());
              final long rest = cursor.length() - begin;
              if (rest > 0 && to.hasRemaining()) {
                final int length = (int) Math.min(rest, to.remaining());
                new UnsafeBuffer(address + begin, length).getBytes(0, to, length);
              }
            });
    if (isDamaged[0]) {
      logUnread(shuffleId, mapId, "it is damaged");
    }
    return isThere && !isDamaged[0] && !to.hasRemaining();
  }

  /** Takes an extent and its address here. */
  @FunctionalInterface
  private interface ExtentConsumer {
    void extent(EntryCursor cursor, long address);
  }

  /** Returns whether all extents of the block are in host memory, and were given. */
  @GuardedBy("this")
  private boolean forEachExtent(
      final int shuffleId, final long mapId, final int partition, final ExtentConsumer consumer) {
    final Left left = shuffles.get(shuffleId);
    if (left == null || !left.maps.contains(mapId)) {
      return false;
    }
    wasRead = true;
    readAt = clock.nanos();
    try {
      final ShuffleView shuffle = catalog().shuffle(shuffleId);
      final EntryCursor cursor = new EntryCursor();
      if (shuffle == null || !shuffle.find(mapId, cursor)) {
        return false;
      }
      for (int batch = 0; batch < cursor.batches(); batch++) {
        if (cursor.extent(batch, partition)) {
          final SegmentMemory memory = mapped.computeIfAbsent(cursor.segmentId(), segments::map);
          if (memory == null) {
            return false;
          }
          consumer.extent(cursor, cursor.address(memory));
        }
      }
      return true;
    } catch (final ZerohopException e) {
      logUnread(shuffleId, mapId, e.getMessage());
      return false;
    }
  }

  /** A reader may ask for what there cannot be, and again and again. */
  private void logUnread(final int shuffleId, final long mapId, final @Nullable String why) {
    if (unread.isNew(shuffleId + " " + mapId)) {
      LOG.info(
          "a block of map output {} of shuffle {} of executor {} is not read (logged once): {}",
          mapId,
          shuffleId,
          owner,
          why);
    }
  }

  @Override
  public byte[] connected(final PeerInfo peer) {
    return lanes.connected(peer);
  }

  @Override
  public synchronized @Nullable SegmentHandle export(final long segmentId) {
    if (segmentId == root.memory().id()) {
      return root.memory().segment().export();
    }
    final SegmentHandle handle = segments.export(segmentId);
    readAt = handle == null ? readAt : clock.nanos();
    return handle;
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
    lanes.disconnected(peer);
  }

  @Override
  public synchronized void close() {
    shuffles.clear();
    files.values().forEach(LeftFile::close);
    files.clear();
    unmap();
    segments.close();
    root.close();
  }

  @Override
  public String toString() {
    return "executor " + owner;
  }
}
