package io.zerohop.shuffle.transport.ucx.engine;

/**
 * The libucx and jucx of this process, as far as they say what they are without a port. Immutable.
 *
 * @param description which they are
 * @param reachesGpuMemory whether requests may go to GPU memory
 */
public record UcxLibrary(String description, boolean reachesGpuMemory) {}
