package io.zerohop.spark.conf;

import io.zerohop.device.Message;

/** The application is stopped at its start, since it cannot work as it is configured. */
public final class RefusedStartException extends IllegalStateException implements Message.Source {
  private static final long serialVersionUID = 1L;

  private final Message message;

  public RefusedStartException(final Message message) {
    super(message.text());
    this.message = message;
  }

  @Override
  public Message message() {
    return message;
  }
}
