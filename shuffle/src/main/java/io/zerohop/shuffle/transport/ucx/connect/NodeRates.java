package io.zerohop.shuffle.transport.ucx.connect;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.ucx.memory.TestRange;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;

/**
 * How fast the executors of each node are read, each way, as the first one of it was: with a
 * thousand executors on a hundred nodes nine tenths of what is measured would be measured again.
 * Thread safe; two threads that meet a node at once may both measure.
 */
final class NodeRates {
  /** Best of so many: in the first one memory is mapped. */
  private static final int TIMES = 2;

  private final Clock clock;
  private final Map<Road, Double> known = new ConcurrentHashMap<>();

  NodeRates(final Clock clock) {
    this.clock = clock;
  }

  /** What bytes come by. */
  enum Way {
    GET,
    SEND,
    GPU_GET
  }

  private record Road(String node, Way way) {}

  /**
   * The rate in bytes a second, measured if it is not known.
   *
   * @param node as {@link io.zerohop.shuffle.block.Location#bootId} names it
   * @param read of {@link TestRange#BYTES}
   */
  double of(final String node, final Way way, final TestReads.Read read)
      throws ExecutionException, TimeoutException, InterruptedException {
    final Road road = new Road(node, way);
    final Double measured = known.get(road);
    if (measured != null) {
      return measured;
    }
    final double rate = measure(read);
    known.put(road, rate);
    return rate;
  }

  private double measure(final TestReads.Read read)
      throws ExecutionException, TimeoutException, InterruptedException {
    long least = Long.MAX_VALUE;
    for (int i = 0; i < TIMES; i++) {
      final long begin = clock.nanos();
      read.run();
      least = Math.min(least, clock.since(begin));
    }
    return 1e9 * TestRange.BYTES / least;
  }
}
