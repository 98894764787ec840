package io.zerohop.shuffle.fetch;

/** Blocks and bytes that went one way since the node's start. */
public record MovedBlocks(long blocks, long bytes) {}
