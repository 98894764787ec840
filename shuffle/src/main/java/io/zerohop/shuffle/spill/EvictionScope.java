package io.zerohop.shuffle.spill;

/** The extent to which a pool releases memory. Segments that hold nothing go in any case. */
public enum EvictionScope {
  /** Map outputs of shuffles that nobody uses leave it, as they would to make room for others. */
  COLD,
  /** Map outputs that are in use leave it, too, after the cold ones. */
  ALL
}
