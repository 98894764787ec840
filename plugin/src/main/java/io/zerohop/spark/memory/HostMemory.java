package io.zerohop.spark.memory;

import io.zerohop.device.host.AvailableMemory;

/**
 * Bounds on an executor's memory on its machine, in bytes, read at start.
 *
 * @param totalBytes the machine's memory
 * @param availableBytes what could be taken now
 * @param limitBytes tightest limit of the control groups of this process and above it; {@link
 *     Long#MAX_VALUE} if there is none
 * @param heapBytes most heap of this JVM
 * @param processors cores that this process may run on
 */
record HostMemory(
    long totalBytes, long availableBytes, long limitBytes, long heapBytes, int processors) {

  /** This machine, now. */
  static HostMemory here() {
    final Runtime runtime = Runtime.getRuntime();
    final long total = AvailableMemory.machineTotalBytes();
    return new HostMemory(
        total == Long.MAX_VALUE ? runtime.maxMemory() : total, // Not known: rather too little.
        AvailableMemory.bytes(),
        AvailableMemory.limitBytes(),
        runtime.maxMemory(),
        runtime.availableProcessors());
  }

  /** Returns these bounds for a JVM with another heap. */
  HostMemory withHeap(final long bytes) {
    return new HostMemory(totalBytes, availableBytes, limitBytes, bytes, processors);
  }

  /** Returns whether a control group leaves less than the machine has. */
  boolean isLimited() {
    return limitBytes < totalBytes;
  }

  /** Returns the memory that all processes under the tightest bound may hold together. */
  long boundBytes() {
    return Math.min(totalBytes, limitBytes);
  }
}
