package io.zerohop.shuffle.transport.ucx.engine;

import io.zerohop.device.Message;
import io.zerohop.shuffle.transport.remote.Carrier.CarrierException;
import org.jspecify.annotations.Nullable;

/** UCX is not there, or not as it has to be; blocks of other nodes go another way (FALLBACK). */
public class UcxException extends CarrierException {
  private static final long serialVersionUID = 1L;

  public UcxException(final String what, final @Nullable Throwable cause) {
    super(what, cause);
  }

  public UcxException(final Message message, final @Nullable Throwable cause) {
    super(message, cause);
  }

  /** The libucx that was loaded is older than what is used; the message is all there is to say. */
  public static final class OldLibucxException extends UcxException {
    private static final long serialVersionUID = 1L;

    public OldLibucxException(final String message) {
      super(message, null);
    }
  }
}
