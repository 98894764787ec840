package io.zerohop.shuffle.transport.samenode;

import io.zerohop.device.Crc32c;
import io.zerohop.device.ZerohopException;
import io.zerohop.device.exchange.OncePerKey;
import io.zerohop.shuffle.catalog.CatalogView;
import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.catalog.CatalogView.ShuffleView;
import io.zerohop.shuffle.catalog.EntryCursor;
import io.zerohop.shuffle.catalog.RootSegment.RootView;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.SegmentResolver;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.agrona.concurrent.UnsafeBuffer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The catalog and the blocks that an executor has left in memory, as its keeper reads them itself.
 * Maps segments when they are first read. Not thread safe: used under the lock of {@link
 * LeftMemory}, which keeps it from reading what is dropped.
 */
final class LeftCatalog {
  private static final Logger LOG = LoggerFactory.getLogger(LeftCatalog.class);

  private final RootView root;
  private final LeftSegments segments;
  private final String owner;
  private final long incarnation;
  private final Map<Long, SegmentMemory> mapped = new HashMap<>();

  /** Over what is mapped; absent while nothing is. */
  private @Nullable CatalogView catalog;

  private boolean wasRead;

  /** Map outputs whose blocks could not be read, as the log says once for each. */
  private final OncePerKey unread = new OncePerKey();

  /**
   * @param root of the executor; stays the caller's, as do the segments
   * @param owner names the executor in messages
   */
  LeftCatalog(
      final RootView root,
      final LeftSegments segments,
      final String owner,
      final long incarnation) {
    this.root = root;
    this.segments = segments;
    this.owner = owner;
    this.incarnation = incarnation;
  }

  /** Ids of the shuffles that are listed. */
  Set<Integer> shuffles() {
    return root.shuffles();
  }

  /**
   * Returns the segments of each map output that readers find whole.
   *
   * @return what is damaged is left out
   * @throws ZerohopException on any other failure, since it may pass
   */
  Map<Long, Set<Long>> wholeOutputs(final int shuffleId) {
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

  private CatalogView catalog() {
    CatalogView known = catalog;
    if (known == null) {
      known = new CatalogView(root, this::map, owner, incarnation);
      catalog = known;
    }
    return known;
  }

  private @Nullable SegmentMemory map(final long segmentId) {
    return mapped.computeIfAbsent(segmentId, segments::map);
  }

  /**
   * Returns what readers find of a shuffle.
   *
   * @param resolver keeps segments mapped as long as the view is used
   */
  @Nullable ShuffleView view(final int shuffleId, final SegmentResolver resolver) {
    return new CatalogView(root, resolver, owner, incarnation).shuffle(shuffleId);
  }

  /** Unmaps everything; what is read again is mapped again. */
  void unmap() {
    catalog = null;
    mapped.values().forEach(SegmentMemory::close);
    mapped.clear();
  }

  /** Unmaps everything if nobody has read since the last call. */
  void unmapUnread() {
    if (!wasRead) {
      unmap();
    }
    wasRead = false;
  }

  /** As {@link LeftBlocks#bytes}. */
  long bytes(final int shuffleId, final long mapId, final int partition) {
    final long[] bytes = {0};
    final boolean isThere =
        forEachExtent(
            shuffleId, mapId, partition, (cursor, address) -> bytes[0] += cursor.length());
    return isThere ? bytes[0] : -1;
  }

  /** As {@link LeftBlocks#read}. */
  boolean read(
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

  /** Returns whether all extents of the block can be read here, and were given. */
  private boolean forEachExtent(
      final int shuffleId, final long mapId, final int partition, final ExtentConsumer consumer) {
    wasRead = true;
    try {
      final ShuffleView shuffle = catalog().shuffle(shuffleId);
      final EntryCursor cursor = new EntryCursor();
      if (shuffle == null || !shuffle.find(mapId, cursor)) {
        return false;
      }
      for (int batch = 0; batch < cursor.batches(); batch++) {
        if (cursor.extent(batch, partition)) {
          final SegmentMemory memory = map(cursor.segmentId());
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
}
