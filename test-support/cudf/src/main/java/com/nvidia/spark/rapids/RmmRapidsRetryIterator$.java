package com.nvidia.spark.rapids;

import com.nvidia.spark.rapids.jni.GpuRetryOOM;
import com.nvidia.spark.rapids.jni.GpuSplitAndRetryOOM;
import scala.Function0;

/**
 * As RAPIDS': runs a step again that found no memory, and after that asks for less to be done. One
 * that can only be split goes on to the caller.
 */
public final class RmmRapidsRetryIterator$ {
  public static final RmmRapidsRetryIterator$ MODULE$ = new RmmRapidsRetryIterator$();
  private static final int MAX_RETRIES = 2;

  private RmmRapidsRetryIterator$() {}

  public <T> T withRetryNoSplit(final Function0<T> step) {
    for (int tries = 0; ; tries++) {
      try {
        return step.apply();
      } catch (final GpuRetryOOM e) {
        if (tries == MAX_RETRIES) {
          throw new GpuSplitAndRetryOOM("could not split inputs and retry");
        }
      }
    }
  }
}
