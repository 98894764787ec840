package com.nvidia.spark.rapids;

/** As {@link ShimLoader}. */
public interface GpuExpression {}
