package io.zerohop.shuffle.pool;

import io.zerohop.device.Message;
import io.zerohop.device.ZerohopException;
import org.jspecify.annotations.Nullable;

/**
 * Thrown if the pool has no room for a region; the bytes must go elsewhere. Nothing was changed.
 */
public final class PoolFullException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  private final long requestedBytes;

  public PoolFullException(
      final String what, final long requestedBytes, final @Nullable Throwable cause) {
    this(Message.of(what), requestedBytes, cause);
  }

  public PoolFullException(
      final Message message, final long requestedBytes, final @Nullable Throwable cause) {
    super(Category.FALLBACK, message, cause);
    this.requestedBytes = requestedBytes;
  }

  /** The size that was refused, in bytes. */
  public long requestedBytes() {
    return requestedBytes;
  }
}
