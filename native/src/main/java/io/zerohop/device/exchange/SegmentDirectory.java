package io.zerohop.device.exchange;

import io.zerohop.device.SegmentHandle;

/**
 * What a {@link SegmentServer} serves. All calls come from the server's one thread, so they must
 * not wait; an exception ends the connection that it concerns.
 */
public interface SegmentDirectory {

  /**
   * A peer has connected.
   *
   * @return greeting that the peer gets, at most {@link SegmentServer#MAX_GREETING_BYTES}
   */
  byte[] connected(PeerInfo peer);

  /** A new handle to a segment, which the server closes once it is sent; null when it is gone. */
  SegmentHandle export(long segmentId);

  /** The peer's connection ended, exactly once for each {@link #connected} that returned. */
  void disconnected(PeerInfo peer);
}
