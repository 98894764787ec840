/**
 * Segments handed to peers of one node over a Unix-domain socket: {@link
 * io.zerohop.device.exchange.SegmentServer} on the owner's side, {@link
 * io.zerohop.device.exchange.PeerLink} on the peer's, a {@link
 * io.zerohop.device.exchange.SocketFolder} where they meet. The protocol is drawn in
 * docs/exchange.md.
 */
package io.zerohop.device.exchange;
