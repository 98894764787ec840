package io.zerohop.shuffle.transport;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;

/** Thrown if the owner of blocks is dead, and the blocks in its memory are lost. */
public final class OwnerGoneException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  public OwnerGoneException(final Message message, final Throwable cause) {
    super(Category.FETCH_FAILED, message, cause);
  }
}
