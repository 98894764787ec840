package io.zerohop.shuffle.block;

/**
 * The name of a map output that this node holds in memory.
 *
 * @param shuffleId the shuffle
 * @param mapId the map task attempt that wrote it
 */
public record StoredOutput(int shuffleId, long mapId) {}
