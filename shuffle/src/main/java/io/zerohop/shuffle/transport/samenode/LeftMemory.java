package io.zerohop.shuffle.transport.samenode;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.zerohop.device.Device;
import io.zerohop.device.Segment;
import io.zerohop.device.SegmentHandle;
import io.zerohop.device.Undo;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.PeerLink.Loan;
import io.zerohop.device.exchange.SegmentServer.PeerInfo;
import io.zerohop.device.exchange.SegmentServer.SegmentDirectory;
import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Location;
import io.zerohop.shuffle.catalog.CatalogView.ShuffleView;
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
  private final HostCopies copies;
  private final RootSegment root;
  private final LeftSegments segments;
  private final PeerLanes lanes;

  private final LeftCatalog catalog;

  /** What is there, in memory or in files. */
  private final Map<Integer, Left> shuffles = new ConcurrentHashMap<>();

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
    boolean isOnGpu() {
      return segments.stream().anyMatch(id -> SegmentIds.tier(id) == Tier.DEVICE);
    }
  }

  /**
   * Takes over the descriptors.
   *
   * @param owner names the executor in messages
   * @param greeting of the executor
   * @param ended its root, which nobody writes any more and the caller closes
   * @param held its descriptors; the caller's if this fails
   * @param copiesGpu whether its keeper can copy GPU memory
   * @throws ZerohopException if it cannot be looked at now
   */
  LeftMemory(
      final Device device,
      final String owner,
      final Greeting greeting,
      final SegmentMemory ended,
      final Map<Long, SegmentHandle> held,
      final boolean copiesGpu,
      final Clock clock) {
    this.clock = clock;
    this.copies = new HostCopies(copiesGpu, clock);
    this.readAt = clock.nanos();
    this.owner = owner;
    this.greeting = greeting;
    root = new RootSegment(device, greeting.incarnation(), ended, held.keySet());
    segments = new LeftSegments(device, owner, root, held, copies);
    lanes = new PeerLanes(root, greeting.view());
    try (Undo undo = new Undo(root)) {
      root.lanes().freeze();
      catalog =
          new LeftCatalog(
              new RootView(root.memory(), greeting.incarnation(), owner),
              segments,
              owner,
              greeting.incarnation());
      undo.add(catalog::unmap);
      look();
      closeUnused();
      undo.done();
    }
  }

  /** Finds what is there, once: nothing comes any more, and what goes is dropped. */
  private void look() {
    for (final int shuffleId : catalog.shuffles()) {
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

  private synchronized Map<Long, Set<Long>> wholeOutputs(final int shuffleId) {
    return catalog.wholeOutputs(shuffleId);
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
    catalog.unmap();
    final Set<Long> used = new HashSet<>();
    shuffles.forEach(
        (shuffleId, left) -> used.addAll(files.containsKey(shuffleId) ? Set.of() : left.segments));
    segments.retain(used);
  }

  /** Unmaps what nobody has read here since the last call. */
  public synchronized void unmapUnread() {
    catalog.unmapUnread();
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

  /**
   * Shuffles that may be written to files, since all of their memory can be read here.
   *
   * @param onGpu whether only those whose files free GPU memory
   */
  Stream<Integer> spillable(final boolean onGpu) {
    return shuffles.entrySet().stream()
        .filter(shuffle -> isInMemory(shuffle.getKey()))
        .filter(shuffle -> !onGpu || shuffle.getValue().isOnGpu())
        .filter(shuffle -> segments.notHere(shuffle.getValue().segments).isEmpty())
        .map(Map.Entry::getKey);
  }

  /** The GPU whose memory it has. */
  public String gpu() {
    return greeting.view().gpuUuid();
  }

  /** Copies of its GPU memory, and whether they are wanted. */
  public HostCopies copies() {
    return copies;
  }

  /** Segments of GPU memory that are not copied and whose shuffles are in no file; their bytes. */
  public Map<Long, Long> uncopied() {
    final Map<Long, Long> found = new HashMap<>();
    shuffles.forEach(
        (shuffleId, left) -> {
          if (isInMemory(shuffleId)) {
            found.putAll(segments.notHere(left.segments));
          }
        });
    return found;
  }

  /**
   * Takes host memory for a copy of GPU memory, for who connects as {@link Location#COPIER}.
   *
   * @param copy as large as the segment; closed with it
   */
  public void addCopy(final long segmentId, final Segment copy) {
    segments.addCopy(segmentId, copy);
  }

  /**
   * Nobody makes copies any more. What has none is dropped if somebody waits for it: it is computed
   * again, and at once as a whole. Otherwise it stays, and can be copied after a while.
   *
   * @return whether all that is in GPU memory has been copied
   */
  public boolean copyEnded() {
    final boolean areAll = uncopied().isEmpty();
    final boolean wereAwaited = copies.areAwaited();
    copies.ended(areAll);
    if (wereAwaited && !areAll) {
      Set.copyOf(shuffles.keySet()).stream().filter(this::isUncopied).forEach(this::drop);
    }
    return areAll;
  }

  private boolean isUncopied(final int shuffleId) {
    final Left left = shuffles.get(shuffleId);
    return left != null && isInMemory(shuffleId) && !segments.notHere(left.segments).isEmpty();
  }

  /**
   * Closes copies, unless more of them are just made; the GPU memory is there as before.
   *
   * @return whether there were any
   */
  public synchronized boolean closeCopies() {
    if (copies.areWanted()) {
      return false;
    }
    catalog.unmap();
    return copies.closeComplete();
  }

  /**
   * Has what keeps GPU memory in use go to files.
   *
   * @return whether that may still come, or is done but for readers
   */
  public boolean leaveGpu() {
    final boolean isDone =
        shuffles.entrySet().stream()
            .noneMatch(shuffle -> isInMemory(shuffle.getKey()) && shuffle.getValue().isOnGpu());
    return isDone || copies.leave(fileBytes());
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
    return shuffles.containsKey(shuffleId) ? catalog.view(shuffleId, resolver) : null;
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
    return isNowInMemory(shuffleId, mapId) ? catalog.bytes(shuffleId, mapId, partition) : -1;
  }

  /** Counts as a reader. */
  @GuardedBy("this")
  private boolean isNowInMemory(final int shuffleId, final long mapId) {
    final Left left = shuffles.get(shuffleId);
    final boolean isThere = left != null && left.maps.contains(mapId);
    readAt = isThere ? clock.nanos() : readAt;
    return isThere;
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

  @Override
  public boolean isBeingCopied(final int shuffleId) {
    return isUncopied(shuffleId) && copies.await();
  }

  private synchronized boolean readInMemory(
      final int shuffleId,
      final long mapId,
      final int partition,
      final long from,
      final ByteBuffer to) {
    return isNowInMemory(shuffleId, mapId) && catalog.read(shuffleId, mapId, partition, from, to);
  }

  @Override
  public byte[] connected(final PeerInfo peer) {
    return isCopier(peer) ? new byte[0] : lanes.connected(peer);
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

  /** Who copies GPU memory is no reader: it has no lane, and does not keep memory from files. */
  private static boolean isCopier(final PeerInfo peer) {
    return peer.name().equals(Location.COPIER);
  }

  @Override
  public @Nullable SegmentHandle export(final PeerInfo peer, final long segmentId) {
    return isCopier(peer) ? segments.exportToCopier(segmentId) : export(segmentId);
  }

  /** It asks so for the memory that takes a copy. */
  @Override
  public @Nullable SegmentHandle keep(final PeerInfo peer, final long segmentId) {
    return isCopier(peer) ? copies.forCopier(segmentId) : null;
  }

  /** It has made the copy. */
  @Override
  public void kept(final PeerInfo peer, final long segmentId) {
    if (isCopier(peer)) {
      copies.done(segmentId);
    }
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
    if (!isCopier(peer)) {
      lanes.disconnected(peer);
    }
  }

  @Override
  public synchronized void close() {
    shuffles.clear();
    files.values().forEach(LeftFile::close);
    files.clear();
    catalog.unmap();
    segments.close();
    root.close();
  }

  @Override
  public String toString() {
    return "executor " + owner;
  }
}
