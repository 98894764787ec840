package io.zerohop.device;

import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * The one root of every failure Zerohop raises. Its category says what the caller may do about it;
 * exactly one place in the Spark plugin turns the category into Spark's outcome.
 *
 * <p>A message names what happened, where (executor, device, peer, path) and the key or command
 * that fixes it. It is a {@link Message}: code takes its fields, and the text is for people alone.
 */
public class ZerohopException extends RuntimeException implements Message.Source {
  private static final long serialVersionUID = 1L;

  /** The reaction that a failure allows. */
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
  private final Message message;

  /** Creates a failure whose message says only what happened. */
  public ZerohopException(final Category category, final @Nullable String what) {
    this(category, what, null);
  }

  /** Creates a failure with a cause; its message says only what happened. */
  public ZerohopException(
      final Category category, final @Nullable String what, final @Nullable Throwable cause) {
    this(category, Message.of(String.valueOf(what)), cause);
  }

  public ZerohopException(final Category category, final Message message) {
    this(category, message, null);
  }

  public ZerohopException(
      final Category category, final Message message, final @Nullable Throwable cause) {
    super(null, cause);
    this.category = Objects.requireNonNull(category);
    this.message = Objects.requireNonNull(message);
  }

  /** Returns the whole message as one line. It is made when it is asked for: most never are. */
  @Override
  public final String getMessage() {
    return message.text();
  }

  @Override
  public final Message message() {
    return message;
  }

  /** What the caller may do about this failure. */
  public final Category category() {
    return category;
  }
}
