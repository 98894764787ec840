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

  @Override
  public String toString() {
    return major + "." + minor + "." + patch;
  }
}
