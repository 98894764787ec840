package io.zerohop.spark.report;

import io.zerohop.device.Message;
import io.zerohop.shuffle.block.Block;
import io.zerohop.shuffle.block.BlockSource;
import io.zerohop.shuffle.block.Link;
import io.zerohop.spark.report.ReportCounters.MovedCount;
import io.zerohop.spark.watch.ExecutorWatch;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Counts of one reader in the current time slot. They go to the executor's {@link ReportCounters}
 * once in a slot and not for each block, because all tasks share its lock. To be flushed when the
 * reader ends. Thread safe, since a step of the reader may outlast its task for a moment; what is
 * counted after that is told at once.
 */
public final class ReaderCounts implements ExecutorWatch.Reader {
  private final ReportCounters executor;
  private final int shuffleId;
  private Map<String, Map<Link, MovedCount>> flows = new HashMap<>();
  private long slot;
  private long waitNanos;
  private boolean ended;

  /**
   * Counts of one reader.
   *
   * @param shuffleId the shuffle that is read
   */
  public ReaderCounts(final ReportCounters executor, final int shuffleId) {
    this.executor = executor;
    this.shuffleId = shuffleId;
  }

  @Override
  public void fetched(
      final BlockSource source, final Link link, final List<Block> blocks, final long bytes) {
    fetched(source.executorId(), link, blocks.size(), bytes);
  }

  void fetched(final String owner, final Link link, final long blocks, final long bytes) {
    fetched(owner, link, blocks, bytes, System.nanoTime() / ReportCounters.SLOT_NANOS);
  }

  synchronized void fetched(
      final String owner, final Link link, final long blocks, final long bytes, final long now) {
    if (now != slot) {
      tell();
      slot = now;
    }
    flows
        .computeIfAbsent(owner, any -> new EnumMap<>(Link.class))
        .computeIfAbsent(link, any -> new MovedCount())
        .add(blocks, bytes);
    if (ended) {
      tell();
    }
  }

  @Override
  public synchronized void waited(final long nanos) {
    waitNanos += nanos;
    if (ended) {
      tell();
    }
  }

  @Override
  public void fellBack(final BlockSource source, final List<Block> blocks, final Message reason) {
    executor.fellBack(
        shuffleId, blocks.size(), blocks.stream().mapToLong(Block::bytes).sum(), reason);
  }

  /** Tells what was counted. */
  @Override
  public synchronized void end() {
    ended = true;
    tell();
  }

  private void tell() {
    if (!flows.isEmpty() || waitNanos > 0) {
      executor.add(shuffleId, slot, flows, waitNanos);
      flows = new HashMap<>();
      waitNanos = 0;
    }
  }
}
