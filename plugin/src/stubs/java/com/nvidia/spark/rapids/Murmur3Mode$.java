package com.nvidia.spark.rapids;

/** As {@link ShimLoader}. */
public final class Murmur3Mode$ implements HashMode {
  public static final Murmur3Mode$ MODULE$ = null;

  private Murmur3Mode$() {}
}
