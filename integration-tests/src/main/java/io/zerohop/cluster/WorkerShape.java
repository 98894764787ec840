package io.zerohop.cluster;

/**
 * What a worker of a {@link NodeCluster} offers to applications.
 *
 * @param cores how many tasks at a time
 * @param memoryMib for the heaps of all its executors
 */
public record WorkerShape(int cores, int memoryMib) {}
