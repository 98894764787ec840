package io.zerohop.device;

/** The access that peers have to the memory of a segment that they map. */
public enum PeerAccess {
  /**
   * Read it. On the host the kernel sees to it, from Linux 5.1 on; before, and on a GPU, peers are
   * trusted with it.
   */
  READ,
  /** Read and write it. */
  WRITE
}
