package io.zerohop.shuffle.transport;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import org.jspecify.annotations.Nullable;

/** Thrown if the owner of blocks is dead, and the blocks in its memory are lost. */
public final class OwnerGoneException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  public OwnerGoneException(final Message message, final @Nullable Throwable cause) {
    super(Category.FETCH_FAILED, message, cause);
  }
}
