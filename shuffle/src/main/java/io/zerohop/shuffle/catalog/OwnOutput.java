package io.zerohop.shuffle.catalog;

import io.zerohop.device.Device;
import io.zerohop.device.Signal;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.SegmentMemory;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A map output that the catalog holds. Where its blocks lie is not kept twice: it is read from the
 * entry, as peers do. Thread safe.
 */
public final class OwnOutput {
  /** What {@link #ready} is raised to; each output has a word of its own. */
  public static final int READY_EPOCH = ShuffleChunk.READY_EPOCH;

  private final int shuffleId;
  private final long mapId;
  private final int partitions;
  private final List<Region> regions;
  private final Entry entry;

  /** Location of its entry, as it was written: the entry itself may be damaged. */
  record Entry(ShuffleChunk chunk, int offset, int bytes, int signal) {}

  OwnOutput(
      final int shuffleId,
      final long mapId,
      final int partitions,
      final List<Region> regions,
      final Entry entry) {
    this.shuffleId = shuffleId;
    this.mapId = mapId;
    this.partitions = partitions;
    this.regions = List.copyOf(regions);
    this.entry = entry;
  }

  public int shuffleId() {
    return shuffleId;
  }

  public long mapId() {
    return mapId;
  }

  public int partitions() {
    return partitions;
  }

  /** Takes one extent: what its entry says of it, and the segment that it lies in. */
  @FunctionalInterface
  public interface ExtentVisitor {
    void extent(EntryCursor extent, SegmentMemory memory);
  }

  /** Gives the extents of a block, in order. Callers hold the output, see {@link #retain}. */
  public void forEachExtent(final int partition, final ExtentVisitor visitor) {
    final EntryCursor cursor = new EntryCursor();
    entry.chunk.open(entry.offset, entry.bytes, cursor);
    for (int batch = 0; batch < regions.size(); batch++) {
      if (cursor.extent(batch, partition)) {
        visitor.extent(cursor, regions.get(batch).memory());
      }
    }
  }

  /** Returns the damage of its entry, if there is any. Callers hold the output. */
  public @Nullable String entryDamage() {
    return entry.chunk.isIntact(entry.offset, entry.bytes)
        ? null
        : "its entry in segment " + entry.chunk.region().memory().id();
  }

  /**
   * Takes a reference of each of its regions, and of the one that its entry lies in.
   *
   * @return false, with nothing taken, if the output was freed already
   */
  public boolean retain() {
    if (!entry.chunk.region().retain()) {
      return false;
    }
    for (int i = 0; i < regions.size(); i++) {
      if (!regions.get(i).retain()) {
        regions.subList(0, i).forEach(Region::release);
        entry.chunk.region().release();
        return false;
      }
    }
    return true;
  }

  /**
   * The same for who moves it. Does not wait.
   *
   * @return false, with nothing taken, also if its bytes are not there yet
   */
  public boolean retainReady(final Device host) {
    if (!retain()) {
      return false;
    }
    if (ready(host).reached(READY_EPOCH)) {
      return true;
    }
    release();
    return false;
  }

  /** Drops what {@link #retain} took. */
  public void release() {
    regions.forEach(Region::release);
    entry.chunk.region().release();
  }

  /**
   * The word that says when its bytes are there, at {@link #READY_EPOCH}. Callers hold the output.
   *
   * @param host the device of host memory, where it lies
   */
  public Signal ready(final Device host) {
    return entry.chunk.signal(host, entry.signal);
  }

  /**
   * The same word for streams of a GPU; absent if that cannot reach it. Callers hold the output.
   *
   * @throws ZerohopException (FATAL) if the GPU cannot be used any more
   */
  public @Nullable Signal ready(final Device host, final Device gpu) {
    return entry.chunk.signal(host, gpu, entry.signal);
  }

  /** Returns the regions of its batches, in order. */
  public List<Region> regions() {
    return regions;
  }

  ShuffleChunk chunk() {
    return entry.chunk;
  }

  int entryOffset() {
    return entry.offset;
  }

  int entryBytes() {
    return entry.bytes;
  }

  @Override
  public String toString() {
    return "map output " + mapId + " of shuffle " + shuffleId;
  }
}
