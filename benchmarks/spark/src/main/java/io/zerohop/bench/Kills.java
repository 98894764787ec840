package io.zerohop.bench;

import io.zerohop.cluster.ExecutorProcesses;
import io.zerohop.workload.Testbed;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;

/**
 * Kills one of a contender's executors each time that its queries have run for so long. The time
 * during which the others have their turn does not count. For one thread.
 */
final class Kills implements AutoCloseable {
  private final Testbed testbed;
  private final long periodNanos;
  private final Map<Integer, Lane> lanes = new HashMap<>();
  private final ScheduledExecutorService timer =
      Executors.newSingleThreadScheduledExecutor(
          task -> {
            final Thread thread = new Thread(task, "kills");
            thread.setDaemon(true);
            return thread;
          });

  Kills(final Testbed testbed, final Duration period) {
    this.testbed = testbed;
    this.periodNanos = period.toNanos();
  }

  /** Runs a query of a contender, under kills when it is time for them. */
  <T> T during(final int lane, final Supplier<T> query) {
    final Lane mine = of(lane);
    final long start = System.nanoTime();
    final var kills =
        timer.scheduleAtFixedRate(
            () -> mine.kill(testbed.driver(lane)),
            periodNanos - mine.usedNanos,
            periodNanos,
            TimeUnit.NANOSECONDS);
    try {
      return query.get();
    } finally {
      kills.cancel(false);
      mine.usedNanos = (mine.usedNanos + System.nanoTime() - start) % periodNanos;
    }
  }

  /** How many executors of a contender were killed so far. */
  int count(final int lane) {
    return of(lane).count.get();
  }

  private Lane of(final int lane) {
    return lanes.computeIfAbsent(lane, Lane::new);
  }

  @Override
  public void close() {
    timer.shutdownNow();
  }

  private static final class Lane {
    private final Random random;
    private final AtomicInteger count = new AtomicInteger();
    private long usedNanos;

    private Lane(final int seed) {
      random = new Random(seed);
    }

    private void kill(final ProcessHandle driver) {
      final List<ProcessHandle> executors = ExecutorProcesses.of(driver);
      if (!executors.isEmpty()
          && executors.get(random.nextInt(executors.size())).destroyForcibly()) {
        count.incrementAndGet();
      }
    }
  }
}
