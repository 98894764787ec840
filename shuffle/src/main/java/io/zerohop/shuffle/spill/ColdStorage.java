package io.zerohop.shuffle.spill;

import io.zerohop.shuffle.MapOutputLease;
import java.io.IOException;

/** Where map outputs go that have to leave memory. Thread safe. */
public interface ColdStorage {

  /**
   * Keeps a map output, so that its owner can serve it from here. May take long.
   *
   * @param output whose bytes stay readable until this returns
   * @throws IOException if there is no room, or nothing can be written; nothing is kept then
   */
  void store(int shuffleId, long mapId, MapOutputLease output) throws IOException;

  /** Forgets a map output whose shuffle ended while it was being stored. */
  void drop(int shuffleId, long mapId);
}
