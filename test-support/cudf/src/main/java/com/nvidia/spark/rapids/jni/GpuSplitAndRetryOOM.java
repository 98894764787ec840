package com.nvidia.spark.rapids.jni;

/** As RAPIDS': less is to be done at a time. */
public class GpuSplitAndRetryOOM extends GpuOOM {
  public GpuSplitAndRetryOOM(final String message) {
    super(message);
  }
}
