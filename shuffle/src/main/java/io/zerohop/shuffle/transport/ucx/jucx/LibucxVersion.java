package io.zerohop.shuffle.transport.ucx.jucx;

import io.zerohop.device.posix.NativeLibrary;
import io.zerohop.device.posix.UcpLibrary;
import io.zerohop.shuffle.transport.ucx.engine.LibucxRelease;

/**
 * Which libucx this process has loaded, and what it is known to do otherwise than others.
 * Immutable. docs/rdma.md, section Which libucx, says what was run and what is read from its
 * sources.
 */
record LibucxVersion(int major, int minor, int patch) {
  private static final LibucxVersion V1_14 = new LibucxVersion(1, 14, 0);
  private static final LibucxVersion V1_16 = new LibucxVersion(1, 16, 0);

  /** The one that jucx has loaded, which it must have. */
  static LibucxVersion loaded() {
    NativeLibrary.require();
    final int version = UcpLibrary.version();
    return new LibucxVersion(version >> 16, version >> 8 & 0xff, version & 0xff);
  }

  private boolean isBefore(final LibucxVersion other) {
    return number() < other.number();
  }

  private int number() {
    return major << 16 | minor << 8 | patch;
  }

  /**
   * Whether it takes messages for the gets of endpoints that handle errors, as all of ours do,
   * although an adapter could do them, unless its newer protocols are switched off: the flag of
   * error handling came into them with 1.19 (src/ucp/rma/get_offload.c).
   */
  boolean emulatesGets() {
    return LibucxRelease.of(number())
        .map(release -> release.gets() == LibucxRelease.Gets.EMULATED_UNLESS_SET)
        .orElse(false);
  }

  /**
   * Whether it ends the process when an endpoint is closed by force under its requests: while it
   * connects by an assertion in src/ucp/core/ucp_request.c, which openucx/ucx#8175 took away, and
   * over TCP later, too, by one in uct_tcp_ep_pending_purge, once in some hundred times.
   */
  boolean abortsOnForcedClose() {
    return isBefore(V1_14);
  }

  /**
   * Why gets must not go into GPU memory: the older protocols, which are the only ones before 1.16,
   * end a get below some 945 bytes in a copy by the CPU (ucp_get_rep_handler, uct_*_get_bcopy),
   * which ends the process if that may not touch the memory.
   *
   * @param off whether the newer protocols are switched off
   * @return null if they may
   */
  String gpuGetObstacle(final boolean off) {
    return isBefore(V1_16) || off
        ? "libucx "
            + this
            + " lets the CPU copy small gets, which cannot write GPU memory: a get into it"
            + " needs libucx 1.19 or later, or 1.16 to 1.18 on a node without RDMA devices, and"
            + " UCX_PROTO_ENABLE not n"
        : null;
  }

  @Override
  public String toString() {
    return major + "." + minor + "." + patch;
  }
}
