package io.zerohop.device;

import java.util.Objects;

/**
 * The one root of every failure Zerohop raises. Its category says what the caller may do about it;
 * exactly one place in the Spark plugin turns the category into Spark's outcome.
 *
 * <p>Messages name what happened, where (executor, device, peer, path) and the key or command that
 * mends it.
 */
public class ZerohopException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** What may be done about a failure. */
  public enum Category {
    /** This process can no longer be trusted with shuffle data; the executor must exit. */
    FATAL,
    /** A named block could not be read; Spark must run its map task again. */
    FETCH_FAILED,
    /** The same call may succeed later, in the same process. */
    RETRY,
    /** The fast path is not available for this request; a slower path is, and must be taken. */
    FALLBACK
  }

  private final Category category;

  public ZerohopException(final Category category, final String message) {
    this(category, message, null);
  }

  public ZerohopException(final Category category, final String message, final Throwable cause) {
    super(message, cause);
    this.category = Objects.requireNonNull(category);
  }

  /** What the caller may do about this failure. */
  public final Category category() {
    return category;
  }
}
