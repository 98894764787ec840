package io.zerohop.shuffle.block;

/** The path of a block from its owner to its reader, best first. */
public enum BlockPath {
  /** Owner and reader are one process: read in place. */
  LOCAL,
  /** Same node: read in place through a mapping of the owner's segment. */
  PEER,
  /** Another node: read out of the owner's memory by UCX, by RDMA where the hardware has it. */
  UCX,
  /**
   * Another node, or memory that cannot be mapped: sent by the owner in messages, over Spark's own
   * connections.
   */
  SENT,
  /** Through Spark's block transfer service, or from a file: always correct, never fast. */
  STAGED;

  /** Returns whether blocks are read where their owner has them. */
  public boolean isInPlace() {
    return this == LOCAL || this == PEER;
  }

  /** Returns whether blocks are moved out of their owner's memory, which may be tried again. */
  public boolean isMoved() {
    return this == UCX || this == SENT;
  }

  /** Lower-case name, as in metrics and in {@code spark.zerohop.paths}. */
  public String label() {
    return name().toLowerCase(java.util.Locale.ROOT);
  }
}
