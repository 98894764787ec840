package io.zerohop.shuffle.transport.remote.carrier;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import org.jspecify.annotations.Nullable;

/**
 * Thrown if there is no carrier, or if it does not reach another executor; blocks take another path
 * (FALLBACK).
 */
public class CarrierException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  public CarrierException(final String what, final @Nullable Throwable cause) {
    this(Message.of(what), cause);
  }

  public CarrierException(final Message message, final @Nullable Throwable cause) {
    super(Category.FALLBACK, message, cause);
  }
}
