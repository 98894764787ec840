package io.zerohop.shuffle.transport.remote.carrier;

import io.zerohop.device.posix.Clock;
import io.zerohop.shuffle.transport.remote.memory.Slabs;
import java.util.concurrent.Executor;

/** Starts a carrier in this process. */
@FunctionalInterface
public interface CarrierStarter {

  /**
   * Starts it.
   *
   * @param sends does what sending takes besides the network: sums, and first contact
   * @param arrivals checks what has arrived
   * @param slabs memory for what a carrier has to copy; the caller's
   * @param clock by which the carrier's limits are measured
   * @return owned by the caller
   * @throws CarrierException if it cannot be used here
   */
  Carrier start(Executor sends, Executor arrivals, Slabs slabs, Clock clock);
}
