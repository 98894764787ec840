package io.zerohop.cluster;

/** A cluster could not be started, asked or stopped; the message says where its log lies. */
public final class ClusterException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Says what happened. */
  public ClusterException(final String message) {
    super(message);
  }

  /** Says what happened and why. */
  public ClusterException(final String message, final Throwable cause) {
    super(message, cause);
  }
}
