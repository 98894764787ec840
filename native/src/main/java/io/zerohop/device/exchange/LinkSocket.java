package io.zerohop.device.exchange;

import io.zerohop.device.posix.Descriptor;
import io.zerohop.device.posix.Sockets;

/**
 * A socket that several threads use. A shutdown wakes them all at once, but the descriptor is
 * closed only when the last one has released it, so that none touches another's descriptor. Thread
 * safe.
 */
final class LinkSocket {
  private final int fd;
  private int holders = 1;
  private boolean down;

  /** Takes over a descriptor; the creator is the first holder. */
  LinkSocket(final int fd) {
    this.fd = fd;
  }

  /** The descriptor, for holders only. */
  int fd() {
    return fd;
  }

  /** Becomes a holder; false when the socket was shut down. */
  synchronized boolean hold() {
    if (down) {
      return false;
    }
    holders++;
    return true;
  }

  /** Ceases to be a holder. */
  synchronized void release() {
    holders--;
    if (holders == 0) {
      down = true;
      Descriptor.close(fd);
    }
  }

  /** Ends the connection in both directions. */
  synchronized void shutdown() {
    if (!down) {
      down = true;
      Sockets.shutdown(fd);
    }
  }
}
