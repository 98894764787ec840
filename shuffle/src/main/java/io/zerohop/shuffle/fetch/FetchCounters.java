package io.zerohop.shuffle.fetch;

import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.Path;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongConsumer;

/**
 * Counts what all fetchers of a node have handed out, by link, and how long their readers waited.
 * Metrics, statistics and tests read these. Thread safe.
 */
public final class FetchCounters {
  /** Blocks and bytes that went one way since the node's start. */
  public record MovedBlocks(long blocks, long bytes) {}

  private final LongAdder[] blocks = adders();
  private final LongAdder[] bytes = adders();

  private final LongAdder unready = new LongAdder();
  private final LongAdder waitedNanos = new LongAdder();
  private volatile LongConsumer waits = nanos -> {};

  void add(final Link link, final long moreBlocks, final long moreBytes) {
    blocks[link.ordinal()].add(moreBlocks);
    bytes[link.ordinal()].add(moreBytes);
  }

  void waited(final long nanos) {
    waitedNanos.add(nanos);
    waits.accept(nanos);
  }

  /**
   * Has each wait told from now on, to one who keeps their distribution.
   *
   * @param told is given nanoseconds, by the readers' own threads; must neither wait nor fail
   */
  public void onWait(final LongConsumer told) {
    waits = told;
  }

  /** Returns what was handed out by one path since the node's start. */
  public MovedBlocks moved(final Path path) {
    long movedBlocks = 0;
    long movedBytes = 0;
    for (final Link link : Link.values()) {
      if (link.path() == path) {
        movedBlocks += blocks[link.ordinal()].sum();
        movedBytes += bytes[link.ordinal()].sum();
      }
    }
    return new MovedBlocks(movedBlocks, movedBytes);
  }

  /** Returns the bytes that were handed out over one link since the node's start. */
  public long bytes(final Link link) {
    return bytes[link.ordinal()].sum();
  }

  /** Returns the nanoseconds that readers have waited since the node's start, in sum. */
  public long waitedNanos() {
    return waitedNanos.sum();
  }

  void foundUnready() {
    unready.increment();
  }

  /** Map outputs that readers found before their bytes were there. */
  public long unready() {
    return unready.sum();
  }

  private static LongAdder[] adders() {
    final LongAdder[] adders = new LongAdder[Link.values().length];
    for (int i = 0; i < adders.length; i++) {
      adders[i] = new LongAdder();
    }
    return adders;
  }
}
