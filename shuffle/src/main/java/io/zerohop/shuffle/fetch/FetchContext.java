package io.zerohop.shuffle.fetch;

import io.zerohop.device.posix.Clock;
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
}
