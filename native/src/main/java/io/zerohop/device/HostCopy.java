package io.zerohop.device;

import java.time.Duration;
import java.util.function.LongFunction;
import java.util.function.ObjLongConsumer;
import java.util.function.Supplier;

/** Brings bytes from where the host cannot read them to where it can. */
public final class HostCopy {
  private HostCopy() {}

  /**
   * Copies to a buffer of its own, and waits until all is there.
   *
   * @param streams opens a stream of the device, which is closed here
   * @param buffers gives host memory of at least so many bytes that the device reaches
   * @param bytes of all copies; may be none
   * @param limit of the wait
   * @param copies adds them to a batch, for a buffer that begins at an address
   * @return the buffer, for the caller to close
   */
  public static HostBuffer gather(
      final Supplier<CopyStream> streams,
      final LongFunction<HostBuffer> buffers,
      final long bytes,
      final Duration limit,
      final ObjLongConsumer<CopyBatch> copies) {
    HostBuffer buffer = null;
    boolean done = false;
    try (CopyStream stream = streams.get()) {
      buffer = buffers.apply(Math.max(1, bytes));
      final CopyBatch batch = stream.newBatch();
      copies.accept(batch, buffer.address());
      stream.submit(batch);
      stream.synchronize(limit);
      done = true;
      return buffer;
    } finally {
      // Behind the stream's end: nothing is under way any more, or a stuck device keeps the memory.
      if (!done && buffer != null) {
        buffer.close();
      }
    }
  }
}
