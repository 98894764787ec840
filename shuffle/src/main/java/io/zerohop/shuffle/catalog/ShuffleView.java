package io.zerohop.shuffle.catalog;

import io.zerohop.device.Device;
import io.zerohop.device.Signal;
import io.zerohop.device.Signal.SignalEpoch;
import io.zerohop.shuffle.catalog.CatalogView.CatalogException;
import io.zerohop.shuffle.pool.SegmentMemory;
import io.zerohop.shuffle.pool.SegmentResolver;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * A reader's view of one shuffle of one owner: its chain of chunks. Thread safe; to be used under a
 * lease, after {@link CatalogView#shuffle} has confirmed it under that lease. A look-up neither
 * locks, allocates nor makes a system call, but for chunks that are seen for the first time.
 */
public final class ShuffleView {
  private static final int LONGEST_CHAIN = 4096;

  private final RootView.Listing listing;
  private final SegmentResolver segments;
  private final String owner;
  private final long incarnation;
  private volatile ChunkView[] chunks = {};

  ShuffleView(
      final RootView.Listing listing,
      final SegmentResolver segments,
      final String owner,
      final long incarnation) {
    this.listing = listing;
    this.segments = segments;
    this.owner = owner;
    this.incarnation = incarnation;
    extend(0, listing.segmentId(), listing.chunkOffset());
  }

  RootView.Listing listing() {
    return listing;
  }

  /**
   * Points the cursor at a map output.
   *
   * @return false if the owner does not list it
   * @throws CatalogException if what was found is damaged
   */
  public boolean find(final long mapId, final EntryCursor cursor) {
    int position = 0;
    for (; ; ) {
      final ChunkView[] known = chunks;
      for (; position < known.length; position++) {
        if (known[position].find(mapId, cursor)) {
          return true;
        }
      }
      final ChunkView last = known[position - 1];
      final long next = last.nextOffset();
      if (next < 0) {
        return false;
      }
      extend(position, last.nextSegment(), next);
    }
  }

  /**
   * Returns the signal that is raised, for the host, when the map output at the cursor is complete.
   */
  public SignalEpoch ready(final Device device, final EntryCursor cursor) {
    return new SignalEpoch(cursor.chunk().signal(device, cursor), cursor.readyEpoch());
  }

  /** The same for streams of a GPU, too; absent if that cannot reach it. */
  public @Nullable SignalEpoch ready(
      final Device device, final Device gpu, final EntryCursor cursor) {
    final Signal signal = cursor.chunk().signal(device, gpu, cursor);
    return signal == null ? null : new SignalEpoch(signal, cursor.readyEpoch());
  }

  /** Returns whether the map output that the cursor points at is complete (acquire). */
  public boolean isReady(final EntryCursor cursor) {
    return cursor.chunk().ready(cursor);
  }

  private synchronized void extend(final int position, final long segmentId, final long offset) {
    final ChunkView[] known = chunks;
    if (known.length > position) {
      return;
    }
    final SegmentMemory memory = position < LONGEST_CHAIN ? segments.resolve(segmentId) : null;
    if (memory == null) {
      throw new CatalogException(
          "the catalog of executor "
              + owner
              + ", shuffle "
              + listing.shuffleId()
              + ", continues in segment "
              + segmentId
              + ", which is not there");
    }
    final ChunkView[] longer = Arrays.copyOf(known, position + 1);
    longer[position] =
        new ChunkView(memory, offset, owner, listing.shuffleId(), position, incarnation);
    chunks = longer;
  }
}
