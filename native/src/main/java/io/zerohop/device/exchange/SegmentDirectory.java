package io.zerohop.device.exchange;

import io.zerohop.device.SegmentHandle;

/**
 * The source of the segments that a {@link SegmentServer} serves. All calls come from the server's
 * one thread, so they must not wait; an exception ends the connection that it concerns, but one of
 * {@link #export} withholds the segment from the peer, this time, and nothing else.
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

  /**
   * The server failed and ends, although nobody closed it. Called once, before any connection ends:
   * to peers the end of their connection looks like the end of this process, and they trust what
   * they have mapped. So whatever memory was handed out must not change from here on.
   */
  void failed(Throwable cause);

  /** The peer's connection ended, exactly once for each {@link #connected} that returned. */
  void disconnected(PeerInfo peer);
}
