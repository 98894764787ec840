package com.nvidia.spark.rapids;

/** As {@link ShimLoader}. */
public class GpuMetric {
  GpuMetric() {}
}
