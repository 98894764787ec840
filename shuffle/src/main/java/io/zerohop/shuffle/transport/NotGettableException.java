package io.zerohop.shuffle.transport;

import io.zerohop.device.ZerohopException;

/** Blocks that their owner holds cannot be got from its memory, but only be sent by it. */
public final class NotGettableException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  /**
   * @param why they cannot be, as a part of a sentence
   */
  public NotGettableException(final String why) {
    super(Category.FALLBACK, "the blocks cannot be read directly: " + why);
  }
}
