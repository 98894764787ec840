package io.zerohop.spark.report;

import io.zerohop.shuffle.block.Path;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;

/**
 * What one reader has counted and not yet told its executor's {@link ReportCounters}, whose lock
 * all tasks share: it is taken once in a slot of time, and not for each block. For the task's
 * thread alone; to be flushed when the task ends.
 */
public final class ReaderCounts {
  private static final long SLOT_NANOS = ReportCounters.SLOT_MILLIS * 1_000_000;

  private final ReportCounters executor;
  private final int shuffleId;
  private final Map<String, Map<Path, Count>> flows = new HashMap<>();
  private long waitNanos;
  private long told = System.nanoTime();

  private static final class Count {
    private long blocks;
    private long bytes;
  }

  /**
   * Nothing is counted if the executor does not report.
   *
   * @param shuffleId the shuffle that is read
   */
  public ReaderCounts(final ReportCounters executor, final int shuffleId) {
    this.executor = executor;
    this.shuffleId = shuffleId;
  }

  /** Blocks have come from an owner. */
  public void fetched(final String owner, final Path path, final long blocks, final long bytes) {
    if (!executor.isEnabled()) {
      return;
    }
    final Count count =
        flows
            .computeIfAbsent(owner, any -> new EnumMap<>(Path.class))
            .computeIfAbsent(path, any -> new Count());
    count.blocks += blocks;
    count.bytes += bytes;
    if (System.nanoTime() - told >= SLOT_NANOS) {
      flush();
    }
  }

  /** The reader stood still. */
  public void waited(final long nanos) {
    waitNanos += nanos;
  }

  /** Blocks have to be staged. */
  public void fellBack(final long blocks, final String reason) {
    executor.fellBack(shuffleId, blocks, reason);
  }

  /** Tells what was counted. */
  public void flush() {
    flows.forEach(
        (owner, paths) ->
            paths.forEach(
                (path, count) ->
                    executor.fetched(shuffleId, owner, path, count.blocks, count.bytes)));
    flows.clear();
    if (waitNanos > 0) {
      executor.waited(shuffleId, waitNanos);
      waitNanos = 0;
    }
    told = System.nanoTime();
  }
}
