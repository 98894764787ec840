package io.zerohop.shuffle.block;

/**
 * A shuffle block by Spark's name, with its size from the map status.
 *
 * @param shuffleId the shuffle
 * @param mapId the map task attempt that wrote it; the only key of a map output
 * @param mapIndex the map partition, needed for failure reports alone
 * @param partition the reduce partition
 * @param bytes the size that the map status gave, an estimate; never 0
 */
public record Block(int shuffleId, long mapId, int mapIndex, int partition, long bytes) {

  @Override
  public String toString() {
    return "shuffle_" + shuffleId + "_" + mapId + "_" + partition;
  }
}
