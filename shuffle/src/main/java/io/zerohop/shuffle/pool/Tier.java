package io.zerohop.shuffle.pool;

/**
 * The kind of memory that a segment lies in. Part of its id, so readers know before they map it.
 */
public enum Tier {
  /** Shared host memory. */
  HOST("spark.zerohop.pool.size"),
  /** Memory of the executor's GPU. */
  DEVICE("spark.zerohop.device.pool.size");

  private final String sizeKey;

  Tier(final String sizeKey) {
    this.sizeKey = sizeKey;
  }

  /** The configuration key by which its pool is made larger; for messages. */
  public String sizeKey() {
    return sizeKey;
  }
}
