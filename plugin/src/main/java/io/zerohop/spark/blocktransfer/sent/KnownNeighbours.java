package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.remote.carrier.CarrierException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.storage.BlockManagerId;

/**
 * What the driver has said of executors, remembered. Names that it does not know cost it a question
 * a second at most, whoever makes them up. Thread safe.
 */
final class KnownNeighbours {
  private static final Duration PAUSE = Duration.ofSeconds(1);

  private final Neighbours driver;
  private final Clock clock;
  private final Map<String, BlockManagerId> known = new ConcurrentHashMap<>();
  private long askAgain;

  KnownNeighbours(final Neighbours driver, final Clock clock) {
    this.driver = driver;
    this.clock = clock;
    this.askAgain = clock.nanos();
  }

  /**
   * Where an executor is. May ask the driver, and wait for it.
   *
   * @throws CarrierException if it is none of this application
   */
  BlockManagerId find(final String executorId) {
    final BlockManagerId before = known.get(executorId);
    if (before != null) {
      return before;
    }
    final BlockManagerId found = ask(executorId);
    if (found == null) {
      throw new CarrierException("the driver lists no executor " + executorId, null);
    }
    known.put(executorId, found);
    return found;
  }

  /** One at a time, and not too often; who waits may find what another one has learned. */
  private synchronized BlockManagerId ask(final String executorId) {
    final BlockManagerId meanwhile = known.get(executorId);
    if (meanwhile != null) {
      return meanwhile;
    }
    if (!clock.isOver(askAgain)) {
      return null; // It was not listed a moment ago, or another name was asked for.
    }
    final BlockManagerId found = driver.find(executorId);
    if (found == null) {
      askAgain = clock.in(PAUSE);
    }
    return found;
  }

  /** It may come back at another place, or not at all. */
  void forget(final String executorId) {
    known.remove(executorId);
  }
}
