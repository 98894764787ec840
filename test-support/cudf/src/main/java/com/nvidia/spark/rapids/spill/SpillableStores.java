package com.nvidia.spark.rapids.spill;

/** As RAPIDS'. */
public final class SpillableStores {
  private final SpillableDeviceStore device = new SpillableDeviceStore();

  public SpillableDeviceStore deviceStore() {
    return device;
  }
}
