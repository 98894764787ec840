package io.zerohop.shuffle.transport.remote.owner;

import io.zerohop.device.Signal;
import io.zerohop.shuffle.catalog.OwnOutput;
import org.jspecify.annotations.Nullable;

/** Finds an owner's map outputs. Thread safe. */
public interface BlockHolder {

  /**
   * A map output, complete or not, retained for the caller to release; absent if it is not held in
   * memory.
   *
   * @see OwnOutput#retain
   */
  @Nullable OwnOutput retain(int shuffleId, long mapId);

  /** The word that says when a map output is complete, at {@link OwnOutput#READY_EPOCH}. */
  Signal ready(OwnOutput retained);
}
