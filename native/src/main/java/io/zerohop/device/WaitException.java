package io.zerohop.device;

import org.jspecify.annotations.Nullable;

/** A wait ended without its epoch: time ran out, somebody aborted it, or it was cancelled. */
public final class WaitException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  public enum Reason {
    TIMEOUT,
    ABORTED,
    CANCELLED
  }

  private final Reason reason;

  public WaitException(final Reason reason, final String message) {
    this(reason, message, null);
  }

  public WaitException(final Reason reason, final String message, final @Nullable Throwable cause) {
    super(Category.RETRY, message, cause);
    this.reason = reason;
  }

  public Reason reason() {
    return reason;
  }
}
