package io.zerohop.device;

import org.jspecify.annotations.Nullable;

/** A device could not give the memory that was asked for; a typed failure, never a fault later. */
public final class DeviceMemoryException extends ZerohopException {
  private static final long serialVersionUID = 1L;

  private final long requestedBytes;

  public DeviceMemoryException(
      final Message message, final long requestedBytes, final @Nullable Throwable cause) {
    super(Category.RETRY, message, cause);
    this.requestedBytes = requestedBytes;
  }

  /** The size that was refused, in bytes. */
  public long requestedBytes() {
    return requestedBytes;
  }
}
