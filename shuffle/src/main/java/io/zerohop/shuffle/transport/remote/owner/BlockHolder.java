package io.zerohop.shuffle.transport.remote.owner;

import io.zerohop.shuffle.catalog.OwnOutput;

/** Finds an owner's map outputs. Thread safe. */
@FunctionalInterface
public interface BlockHolder {

  /**
   * A map output, retained for the caller to release; null if it is not held in memory.
   *
   * @see OwnOutput#retain
   */
  OwnOutput retain(int shuffleId, long mapId);
}
