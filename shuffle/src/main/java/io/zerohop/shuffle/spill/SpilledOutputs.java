package io.zerohop.shuffle.spill;

/**
 * Map outputs that left a pool since the node's start.
 *
 * @param outputs map outputs
 * @param bytes their bytes
 * @param nanos the time that moving them took, in nanoseconds
 * @param failures how often one could not be moved
 */
public record SpilledOutputs(long outputs, long bytes, long nanos, long failures) {}
