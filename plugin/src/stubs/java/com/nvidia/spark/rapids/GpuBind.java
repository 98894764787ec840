package com.nvidia.spark.rapids;

/** As {@link ShimLoader}. */
public interface GpuBind {
  GpuExpression bind(StandInForAttributeSeqInAPackageObject input);
}
