package io.zerohop.shuffle.transport.ucx.engine;

import io.zerohop.device.ZerohopException;

/** UCX is not there, or not as it has to be; blocks of other nodes are staged (FALLBACK). */
public final class UcxException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  public UcxException(final String message, final Throwable cause) {
    super(Category.FALLBACK, message, cause);
  }
}
