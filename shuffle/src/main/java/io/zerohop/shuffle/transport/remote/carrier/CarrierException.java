package io.zerohop.shuffle.transport.remote.carrier;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;

/** A carrier is not there, or does not reach another executor; blocks go another way (FALLBACK). */
public class CarrierException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  public CarrierException(final String what, final Throwable cause) {
    this(Message.of(what), cause);
  }

  public CarrierException(final Message message, final Throwable cause) {
    super(Category.FALLBACK, message, cause);
  }
}
