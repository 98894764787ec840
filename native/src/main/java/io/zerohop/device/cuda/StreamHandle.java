package io.zerohop.device.cuda;

import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;
import org.jspecify.annotations.Nullable;

/**
 * A stream of CUDA's, and how far it has to come. One that is not ours alone has an event behind
 * what was submitted last; by its name another thread would ask for a stream of its own. Used as
 * the copy stream above it is.
 */
final class StreamHandle {
  private final CudaContext context;
  private final CUstream stream;

  /** Absent on a stream of our own. */
  private final @Nullable CUevent last;

  private StreamHandle(
      final CudaContext context, final CUstream stream, final @Nullable CUevent last) {
    this.context = context;
    this.stream = stream;
    this.last = last;
  }

  /** Makes a stream. */
  static StreamHandle create(final CudaContext context) {
    final StreamHandle handle = new StreamHandle(context, new CUstream(), null);
    handle.check(
        JCudaDriver.cuStreamCreate(handle.stream, CUstream_flags.CU_STREAM_NON_BLOCKING),
        "cuStreamCreate");
    return handle;
  }

  /** The calling thread's default stream. */
  static StreamHandle ofThread(final CudaContext context) {
    final StreamHandle handle =
        new StreamHandle(context, JCudaDriver.CU_STREAM_PER_THREAD, new CUevent());
    handle.check(
        JCudaDriver.cuEventCreate(handle.last, CUevent_flags.CU_EVENT_DISABLE_TIMING),
        "cuEventCreate");
    return handle;
  }

  /** What the driver calls it; of a thread's default stream, on that thread. */
  CUstream stream() {
    return stream;
  }

  /** Remembers what was submitted so far as what is to be done. */
  void mark() {
    if (last != null) {
      check(JCudaDriver.cuEventRecord(last, stream), "cuEventRecord");
    }
  }

  /** Asks the driver whether all of it is done; any thread may. */
  int query() {
    return last == null ? JCudaDriver.cuStreamQuery(stream) : JCudaDriver.cuEventQuery(last);
  }

  /** Gives back what was made. */
  void destroy() {
    if (last != null) {
      JCudaDriver.cuEventDestroy(last);
    } else {
      JCudaDriver.cuStreamDestroy(stream);
    }
  }

  private void check(final int status, final String call) {
    CudaStatus.check(status, call, context.toString());
  }
}
