package io.zerohop.device;

/** The codes of what this module logs; docs/runbook.md explains them. */
public enum DeviceCode implements LogCode {
  // Start and settings.
  CHORE_FAILED(1040),

  // Peers of this node.
  SERVER_FAILED(3001),
  CONNECTIONS_LEFT_OPEN(3002),
  ACCEPT_FAILED(3003),
  CONNECTION_FAILED(3004),
  CONNECTION_REFUSED(3005),
  CONNECTION_END_FAILED(3006),
  SEGMENT_WITHHELD(3007),
  LINKS_UNWATCHED(3008),
  LINK_END_FAILED(3009),
  LINK_CALLBACK_FAILED(3010),
  FOLDER_LOCKED(3011),
  FOLDERS_NOT_SWEPT(3012),
  SOCKETS_NOT_SWEPT(3013),
  SOCKET_NOT_REMOVED(3014),
  PEER_UNCONFIRMED(3015),
  FOLDER_TAKEN(3016),

  // GPUs.
  COPY_STREAM_STUCK(5001),
  GPU_SHARED(5002),
  GPUS_SEEN_DIFFER(5003);

  private final int number;

  DeviceCode(final int number) {
    this.number = number;
  }

  @Override
  public int number() {
    return number;
  }
}
