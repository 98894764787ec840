package io.zerohop.shuffle.transport.ucx.jucx;

/**
 * When an endpoint may be closed by force although requests on it are under way, which ends them.
 * Otherwise it is closed behind the last of them.
 */
enum ForcedClose {
  /** At any time. */
  ALWAYS,

  /** From the first request on that has come through: until then it may be connecting. */
  CONNECTED,

  /** Only when UCX has given the endpoint up itself, which is the case of all others, too. */
  LOST;

  /** What a release of libucx bears, over adapters or over TCP. */
  static ForcedClose of(final LibucxVersion version, final boolean rdma) {
    if (!version.abortsOnEarlyClose()) {
      return ALWAYS;
    }
    return rdma ? CONNECTED : LOST;
  }
}
