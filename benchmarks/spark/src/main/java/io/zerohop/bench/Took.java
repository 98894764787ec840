package io.zerohop.bench;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/**
 * How long the calling thread took for something.
 *
 * @param seconds by the clock
 * @param cpuSeconds of the processor, the kernel's part included: others who want the processor,
 *     too, lengthen only the former
 */
record Took(double seconds, double cpuSeconds) {
  private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

  static Start begin() {
    return new Start(System.nanoTime(), THREADS.getCurrentThreadCpuTime());
  }

  /** When it began. */
  record Start(long nanos, long cpuNanos) {
    Took took() {
      return new Took(
          (System.nanoTime() - nanos) / 1e9, (THREADS.getCurrentThreadCpuTime() - cpuNanos) / 1e9);
    }
  }
}
