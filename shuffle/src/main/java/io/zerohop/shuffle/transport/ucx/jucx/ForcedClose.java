package io.zerohop.shuffle.transport.ucx.jucx;

/**
 * When an endpoint may be closed by force although requests on it are under way, which ends them.
 * Otherwise it is closed behind the last of them. One that UCX has given up may always be.
 */
enum ForcedClose {
  /** At any time. */
  ALWAYS,

  /** From the first request on that has come through: until then it may be connecting. */
  CONNECTED,

  /** Only where the requests do not end by themselves within a limit. */
  LATE;

  /** What a release of libucx bears, over adapters or over TCP. */
  static ForcedClose of(final LibucxVersion version, final boolean rdma) {
    if (!version.abortsOnForcedClose()) {
      return ALWAYS;
    }
    return rdma ? CONNECTED : LATE;
  }
}
