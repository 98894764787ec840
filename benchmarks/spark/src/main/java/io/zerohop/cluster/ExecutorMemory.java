package io.zerohop.cluster;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Watches how much memory an application's executors hold, from its making until it is closed.
 *
 * <p>It counts proportional set size: a page that n processes map counts 1/n in each, so that the
 * sum over the executors counts it once. Reading it makes the kernel walk page tables, so nothing
 * should be timed meanwhile. Safe for several threads.
 */
public final class ExecutorMemory implements AutoCloseable {
  private static final long PERIOD_MS = 100;
  private static final long STOP_LIMIT_MS = 10_000;
  private static final long KIB = 1024;

  private final ProcessHandle driver;
  private final ScheduledExecutorService sampler =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            final Thread thread = new Thread(task, "executor-memory");
            thread.setDaemon(true);
            return thread;
          });
  private final AtomicLong peakBytes = new AtomicLong();
  private final AtomicLong peakSharedBytes = new AtomicLong();

  /**
   * Starts to watch.
   *
   * @param driver the process that the executors descend from
   */
  public ExecutorMemory(final ProcessHandle driver) {
    this.driver = driver;
    sampler.scheduleWithFixedDelay(this::sample, 0, PERIOD_MS, TimeUnit.MILLISECONDS);
  }

  /** The most that all executors together have held, in bytes. */
  public long peakBytes() {
    return peakBytes.get();
  }

  /** The most of it that was shared memory: memfds and files in memory that are mapped. */
  public long peakSharedBytes() {
    return peakSharedBytes.get();
  }

  /** Ends the watch; the peaks stay. */
  @Override
  public void close() {
    sampler.shutdown();
    try {
      if (!sampler.awaitTermination(STOP_LIMIT_MS, TimeUnit.MILLISECONDS)) {
        throw new ClusterException("the memory sampler went on for " + STOP_LIMIT_MS + " ms");
      }
    } catch (final InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void sample() {
    long bytes = 0;
    long shared = 0;
    for (final ProcessHandle process : ExecutorProcesses.of(driver)) {
      try {
        final String rollup = Files.readString(file(process, "smaps_rollup"));
        bytes += kib(rollup, "Pss:") * KIB;
        shared += kib(rollup, "Pss_Shmem:") * KIB;
      } catch (final IOException e) {
        // It ended between being listed and being read; it holds nothing now.
      }
    }
    peakBytes.accumulateAndGet(bytes, Math::max);
    peakSharedBytes.accumulateAndGet(shared, Math::max);
  }

  private static Path file(final ProcessHandle process, final String name) {
    return Path.of("/proc", Long.toString(process.pid()), name);
  }

  private static long kib(final String rollup, final String field) {
    return rollup
        .lines()
        .filter(line -> line.startsWith(field))
        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
        .findFirst()
        .orElse(0);
  }
}
