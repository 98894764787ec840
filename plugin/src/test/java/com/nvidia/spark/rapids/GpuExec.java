package com.nvidia.spark.rapids;

/** Stands for RAPIDS' trait: an operator that runs on the GPU. */
public interface GpuExec {}
