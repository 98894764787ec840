package io.zerohop.shuffle.catalog;

import io.zerohop.shuffle.pool.Region;
import java.util.ArrayList;
import java.util.List;

/**
 * A map output that the catalog holds. The batches say what its entry says, for readers in this
 * process that hold it by reference count. Immutable.
 */
public final class OwnOutput {
  private final int shuffleId;
  private final long mapId;
  private final int partitions;
  private final List<BatchImage> batches;
  private final ShuffleChunk chunk;

  OwnOutput(
      final int shuffleId,
      final long mapId,
      final int partitions,
      final List<BatchImage> batches,
      final ShuffleChunk chunk) {
    this.shuffleId = shuffleId;
    this.mapId = mapId;
    this.partitions = partitions;
    this.batches = List.copyOf(batches);
    this.chunk = chunk;
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

  public List<BatchImage> batches() {
    return batches;
  }

  /**
   * Takes a reference of each of its regions.
   *
   * @return false, with nothing taken, if the output was freed already
   */
  public boolean retain() {
    for (int i = 0; i < batches.size(); i++) {
      if (!batches.get(i).region().retain()) {
        for (int k = 0; k < i; k++) {
          batches.get(k).region().release();
        }
        return false;
      }
    }
    return true;
  }

  /** Drops a reference of each of its regions. */
  public void release() {
    batches.forEach(batch -> batch.region().release());
  }

  List<Region> regions() {
    final List<Region> regions = new ArrayList<>(batches.size());
    batches.forEach(batch -> regions.add(batch.region()));
    return regions;
  }

  ShuffleChunk chunk() {
    return chunk;
  }
}
