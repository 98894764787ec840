package io.zerohop.shuffle.pool;

/**
 * The kind of memory that a segment lies in. Part of its id, so readers know before they map it.
 */
public enum Tier {
  /** Shared host memory. */
  HOST,
  /** Memory of the executor's GPU. */
  DEVICE
}
