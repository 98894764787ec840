package io.zerohop.shuffle.catalog;

import io.zerohop.device.Device;
import io.zerohop.device.Signal;
import io.zerohop.device.WaitException;
import io.zerohop.device.ZerohopException;
import io.zerohop.shuffle.pool.Region;
import io.zerohop.shuffle.pool.SegmentMemory;
import java.time.Duration;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A map output that the catalog holds. Where its blocks lie is not kept twice: it is read from the
 * entry, as peers do. Thread safe.
 */
public final class OwnOutput {
  private static final Logger LOG = LoggerFactory.getLogger(OwnOutput.class);

  /** Of a spill for copies that have not ended. */
  private static final Duration SPILL_PATIENCE = Duration.ofMillis(250);

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

  /** Returns the damage of its entry; null if there is none. Callers hold the output. */
  public String entryDamage() {
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
   * The same for who moves it, and waits a moment for copies: RAPIDS may run out of memory right
   * behind a map task, whose copies end in milliseconds.
   *
   * @return false, with nothing taken, also if its bytes are not there by then
   */
  public boolean retainReady(final Device host) {
    if (!retain()) {
      return false;
    }
    boolean ready = false;
    try {
      ready(host).await(READY_EPOCH, SPILL_PATIENCE, () -> false);
      ready = true;
    } catch (final WaitException e) {
      LOG.debug("map output {} of shuffle {} is not complete yet", mapId(), shuffleId());
    } finally {
      if (!ready) {
        release();
      }
    }
    return ready;
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
   * The same word for streams of a GPU; null if that cannot reach it. Callers hold the output.
   *
   * @throws ZerohopException (FATAL) if the GPU cannot be used any more
   */
  public Signal ready(final Device host, final Device gpu) {
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
}
