package io.zerohop.spark.blocktransfer.sent;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.remote.carrier.CarrierException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.spark.storage.BlockManagerId;

/**
 * Caches the addresses of executors that the driver gave. A new name costs one request for the
 * whole list. After a name that is not in the list, the driver is asked again a second later at the
 * earliest, so that invented names neither load it nor hide executors that were listed before.
 * Thread safe.
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
    BlockManagerId found = known.get(executorId);
    if (found == null) {
      ask(executorId);
      found = known.get(executorId);
    }
    if (found == null) {
      throw new CarrierException("the driver lists no executor " + executorId, null);
    }
    return found;
  }

  /** One at a time, and not too often; who waits may find what another one has learned. */
  private synchronized void ask(final String executorId) {
    if (known.containsKey(executorId) || !clock.isOver(askAgain)) {
      return;
    }
    driver.list().forEach(each -> known.put(each.executorId(), each));
    if (!known.containsKey(executorId)) {
      askAgain = clock.in(PAUSE);
    }
  }

  /** It may come back at another place, or not at all; who wants to know asks anew. */
  synchronized void forget(final String executorId) {
    known.remove(executorId);
    askAgain = clock.nanos();
  }
}
