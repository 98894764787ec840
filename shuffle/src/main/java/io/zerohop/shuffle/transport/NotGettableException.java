package io.zerohop.shuffle.transport;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;

/** Thrown if blocks cannot be read from their owner's memory, but only sent by it. */
public final class NotGettableException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  /**
   * @param why they cannot be, as a part of a sentence
   */
  public NotGettableException(final String why) {
    super(Category.FALLBACK, Message.of("the blocks cannot be read directly").because(why));
  }
}
