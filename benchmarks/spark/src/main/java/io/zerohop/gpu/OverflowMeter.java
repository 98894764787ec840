package io.zerohop.gpu;

import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerTaskEnd;

/**
 * Adds up what map outputs found no room for, as tasks report it: bytes that went from GPU memory
 * to host memory or on to files, and those that went to files. Spark's listener thread fills it;
 * the caller lets that thread run dry before it reads.
 */
final class OverflowMeter extends SparkListener {
  private long spilledBytes;
  private long fileBytes;

  @Override
  public synchronized void onTaskEnd(final SparkListenerTaskEnd end) {
    if (end.taskMetrics() != null) {
      spilledBytes += end.taskMetrics().memoryBytesSpilled();
      fileBytes += end.taskMetrics().diskBytesSpilled();
    }
  }

  synchronized void reset() {
    spilledBytes = 0;
    fileBytes = 0;
  }

  /** Bytes that found no room in GPU memory, wherever they went. */
  synchronized long spilledBytes() {
    return spilledBytes;
  }

  /** Bytes that went to files. */
  synchronized long fileBytes() {
    return fileBytes;
  }
}
