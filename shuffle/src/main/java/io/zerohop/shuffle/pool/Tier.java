package io.zerohop.shuffle.pool;

/**
 * The kind of memory that a segment lies in. Part of its id, so readers know before they map it.
 */
public enum Tier {
  /** Shared host memory. */
  HOST(
      "spark.zerohop.pool.size",
      "make it larger by spark.executor.memoryOverhead in a container, and by"
          + " spark.zerohop.pool.size elsewhere or where that is set"),
  /** Memory of the executor's GPU. */
  DEVICE("spark.zerohop.device.pool.size", "raise spark.zerohop.device.pool.size");

  private final String sizeKey;
  private final String remedy;

  Tier(final String sizeKey, final String remedy) {
    this.sizeKey = sizeKey;
    this.remedy = remedy;
  }

  /** The configuration key by which its pool is made larger; for messages. */
  public String sizeKey() {
    return sizeKey;
  }

  /** Returns the remedy that makes its pool larger, for messages. */
  public String remedy() {
    return remedy;
  }
}
