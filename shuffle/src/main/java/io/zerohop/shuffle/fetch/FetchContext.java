package io.zerohop.shuffle.fetch;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.block.Link;
import io.zerohop.shuffle.block.Path;
import io.zerohop.shuffle.block.ReadSide;
import io.zerohop.shuffle.catalog.AccessTimes;
import io.zerohop.shuffle.conf.Config;
import io.zerohop.shuffle.fetch.route.PathChooser;
import io.zerohop.shuffle.pool.Devices;
import io.zerohop.shuffle.transport.Transport;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * State that all fetchers of a node share. Thread safe.
 *
 * @param stagedTimeout longest time in which none of a reader's staged blocks arrives: long, since
 *     the staged transport has limits and retries of its own; this one only ends what would hang
 *     for ever
 * @param devices absent in a process that maps nothing and asks for nothing by UCX
 * @param between what moves blocks between nodes, by path and by who reads them; empty if nothing
 *     does
 */
public record FetchContext(
    Config conf,
    Duration stagedTimeout,
    Clock clock,
    @Nullable Devices devices,
    PathChooser paths,
    ReceiveBudget receiveBudget,
    FetchCounters counters,
    AccessTimes accessTimes,
    Map<Path, Map<ReadSide, Transport>> between) {

  /** The devices of a process that has any. */
  @Override
  public Devices devices() {
    if (devices == null) {
      throw new IllegalStateException("this process shares no memory, and has no devices");
    }
    return devices;
  }

  /** Returns the transports to one reader, by path. */
  Map<Path, Transport> transports(final ReadSide side, final Transport fallback) {
    final Map<Path, Transport> transports = new EnumMap<>(Path.class);
    transports.put(Path.STAGED, fallback);
    between.forEach((path, sides) -> transports.put(path, sides.get(side)));
    return transports;
  }

  /**
   * Counts what all fetchers of a node have handed out, by link, and how long their readers waited.
   * Metrics, statistics and tests read these. Thread safe.
   */
  public static final class FetchCounters {
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
}
