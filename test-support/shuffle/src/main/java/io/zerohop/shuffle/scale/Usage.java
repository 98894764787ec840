package io.zerohop.shuffle.scale;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.Stream;

/**
 * What this process uses now.
 *
 * @param heap bytes that are reachable, after a collection
 * @param direct bytes of buffers outside it, as far as Java counts them
 * @param threads of the virtual machine, without those that serve other nodes: each executor has a
 *     fixed number at most, which come with work
 * @param descriptors that are open
 */
public record Usage(long heap, long direct, int threads, long descriptors) {
  private static final int COLLECTIONS = 3;
  private static final int TIMES = 31;
  private static final Set<String> SERVING =
      Set.of("zerohop-transfers", "zerohop-answers", "zerohop-sends");

  /** Looks. Takes some time, for garbage is collected. */
  public static Usage now() {
    for (int i = 0; i < COLLECTIONS; i++) {
      System.gc();
    }
    try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
      return new Usage(
          ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed(),
          directBytes(),
          countThreads(),
          open.count());
    } catch (final IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Processor time of a step in microseconds, of this thread alone, so that others on the machine
   * do not show: the median of several, behind as many that load and compile.
   */
  public static double cpuMicros(final Runnable step) {
    final long[] nanos = new long[2 * TIMES];
    final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    for (int i = 0; i < nanos.length; i++) {
      final long begin = threads.getCurrentThreadCpuTime();
      step.run();
      nanos[i] = threads.getCurrentThreadCpuTime() - begin;
    }
    Arrays.sort(nanos, TIMES, nanos.length);
    return nanos[TIMES + TIMES / 2] / 1000.0;
  }

  private static int countThreads() {
    return (int)
        Thread.getAllStackTraces().keySet().stream()
            .filter(thread -> !SERVING.contains(thread.getName()))
            .count();
  }

  private static long directBytes() {
    return ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
        .filter(pool -> pool.getName().equals("direct"))
        .mapToLong(BufferPoolMXBean::getMemoryUsed)
        .sum();
  }
}
