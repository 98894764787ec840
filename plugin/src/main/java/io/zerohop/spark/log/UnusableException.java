package io.zerohop.spark.log;

import io.zerohop.device.Message;

/**
 * Something that Zerohop needs is not as it has to be: a setting, a jar, a release of Spark or of
 * RAPIDS. Nothing is tried again.
 */
public final class UnusableException extends IllegalStateException implements Message.Source {
  private static final long serialVersionUID = 1L;

  private final Message message;

  public UnusableException(final Message message) {
    this(message, null);
  }

  public UnusableException(final Message message, final Throwable cause) {
    super(message.text(), cause);
    this.message = message;
  }

  @Override
  public Message message() {
    return message;
  }
}
