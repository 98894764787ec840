package io.zerohop.spark.log;

import io.zerohop.device.Message;
import org.jspecify.annotations.Nullable;

/**
 * Thrown if a required setting, jar, or release of Spark or RAPIDS cannot be used. Nothing is tried
 * again.
 */
public final class UnusableException extends IllegalStateException implements Message.Source {
  private static final long serialVersionUID = 1L;

  private final Message message;

  public UnusableException(final Message message) {
    this(message, null);
  }

  public UnusableException(final Message message, final @Nullable Throwable cause) {
    super(message.text(), cause);
    this.message = message;
  }

  @Override
  public Message message() {
    return message;
  }
}
