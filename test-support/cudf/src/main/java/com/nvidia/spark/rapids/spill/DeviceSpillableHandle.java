package com.nvidia.spark.rapids.spill;

/** As RAPIDS': something that can leave GPU memory. */
public interface DeviceSpillableHandle extends StoreHandle {
  boolean spillable();

  long spill();

  boolean spilling();
}
