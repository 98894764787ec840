package io.zerohop.shuffle.block;

import io.zerohop.device.ZerohopException;

/**
 * Thrown if a map output's bytes in memory are not what was written: it must not get a new
 * checksum.
 */
public final class DamagedOutputException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  public DamagedOutputException(final int shuffleId, final long mapId, final String what) {
    super(
        Category.FETCH_FAILED,
        "map output " + mapId + " of shuffle " + shuffleId + " is damaged in memory: " + what);
  }
}
