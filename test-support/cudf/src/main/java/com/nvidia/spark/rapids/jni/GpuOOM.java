package com.nvidia.spark.rapids.jni;

/** As RAPIDS'. */
public class GpuOOM extends RuntimeException {
  public GpuOOM(final String message) {
    super(message);
  }
}
