package com.nvidia.spark.rapids.spill;

/** As RAPIDS'. */
public final class SpillFramework$ {
  public static final SpillFramework$ MODULE$ = new SpillFramework$();

  private final SpillableStores stores = new SpillableStores();

  private SpillFramework$() {}

  public SpillableStores stores() {
    return stores;
  }
}
