/**
 * A fake of what our code calls of the RAPIDS Accelerator, under its names, above the fake of cudf
 * ({@link ai.rapids.cudf}). It is found as the real one is: by {@link
 * com.nvidia.spark.rapids.ShimLoader}, names and reflection.
 */
package com.nvidia.spark.rapids;
