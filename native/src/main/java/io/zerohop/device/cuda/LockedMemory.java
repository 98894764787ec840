package io.zerohop.device.cuda;

import io.zerohop.device.HostBuffer;
import java.util.function.Consumer;

/** Host memory that the driver keeps in place, so that GPUs reach it, until this is closed. */
abstract class LockedMemory implements HostBuffer {
  private final CudaContext context;
  private final long bytes;
  private final Consumer<Object> onClose;
  private boolean closed;

  /**
   * @param onClose is given this once, when it is closed
   */
  LockedMemory(final CudaContext context, final long bytes, final Consumer<Object> onClose) {
    this.context = context;
    this.bytes = bytes;
    this.onClose = onClose;
  }

  @Override
  public final long bytes() {
    return bytes;
  }

  /** Returns the memory to the driver. */
  abstract void unlock();

  @Override
  public final synchronized void close() {
    if (!closed) {
      closed = true;
      onClose.accept(this);
      if (context.isStuck()) {
        return; // A copy may be under way into it that nobody can wait for any more.
      }
      context.enter();
      unlock();
    }
  }
}
