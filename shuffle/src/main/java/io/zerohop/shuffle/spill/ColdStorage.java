package io.zerohop.shuffle.spill;

import io.zerohop.shuffle.catalog.MapOutputLease;
import java.io.IOException;

/** Storage for map outputs that have to leave memory. Thread safe. */
public interface ColdStorage {

  /**
   * Keeps a map output, so that its owner can serve it from here. May take long. Damage must not
   * get a new checksum, by which it would look right: the checksums that the output has go along,
   * or it is verified on the way.
   *
   * @param output whose bytes stay readable until this returns
   * @throws io.zerohop.shuffle.block.DamagedOutputException if it is seen not to be as it was
   *     written; nothing is kept then
   * @throws IOException if there is no room, or nothing can be written; nothing is kept then
   */
  void store(int shuffleId, long mapId, MapOutputLease output) throws IOException;

  /** Forgets a map output whose shuffle ended while it was being stored. */
  void drop(int shuffleId, long mapId);
}
