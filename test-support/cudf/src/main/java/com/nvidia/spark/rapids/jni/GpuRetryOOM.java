package com.nvidia.spark.rapids.jni;

/** As RAPIDS': the step is to be done again. */
public class GpuRetryOOM extends GpuOOM {
  public GpuRetryOOM(final String message) {
    super(message);
  }
}
