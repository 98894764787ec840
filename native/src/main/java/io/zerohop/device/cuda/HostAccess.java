package io.zerohop.device.cuda;

import io.zerohop.device.cuda.StreamHandle.StreamWait;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;

/**
 * The host's own reads and writes of single words in GPU memory. They go by the copy engine and by
 * the front end of a stream, never by a kernel: they work while kernels that wait fill the GPU.
 * Some ten microseconds each; one at a time.
 */
final class HostAccess implements AutoCloseable {
  private static final Duration LIMIT = Duration.ofSeconds(30);

  private final CudaContext context;
  private final CUstream stream = new CUstream();
  private final PinnedMemory word;
  private final ByteBuffer value;

  HostAccess(final CudaContext context) {
    this.context = context;
    context.enter();
    CudaStatus.check(
        JCudaDriver.cuStreamCreate(stream, CUstream_flags.CU_STREAM_NON_BLOCKING),
        "cuStreamCreate",
        context.toString());
    word = PinnedMemory.allocate(context, Long.BYTES);
    value = word.buffer().order(ByteOrder.nativeOrder());
  }

  /** Eight bytes of GPU memory, read at once. */
  synchronized long read(final long address) {
    context.enter();
    check(
        JCudaDriver.cuMemcpyDtoHAsync(
            Addresses.host(word.address()), Addresses.device(address), Long.BYTES, stream),
        "cuMemcpyDtoHAsync");
    finish();
    return value.getLong(0);
  }

  /** Four bytes, visible to every process when it returns. */
  synchronized void write(final long address, final int word32) {
    context.enter();
    check(
        JCudaDriver.cuStreamWriteValue32(stream, Addresses.device(address), word32, 0),
        "cuStreamWriteValue32");
    finish();
  }

  /** Zeroes a range. */
  synchronized void zero(final long address, final long bytes) {
    context.enter();
    check(
        JCudaDriver.cuMemsetD8Async(Addresses.device(address), (byte) 0, bytes, stream),
        "cuMemsetD8Async");
    finish();
  }

  private void finish() {
    // An interrupted thread must not leave a copy behind that lands in somebody else's answer.
    StreamWait.untilDone(
        () -> JCudaDriver.cuStreamQuery(stream), LIMIT, "host access", context.toString());
  }

  private void check(final int status, final String call) {
    CudaStatus.check(status, call, context.toString());
  }

  @Override
  public synchronized void close() {
    context.enter();
    JCudaDriver.cuStreamDestroy(stream);
    word.close();
  }
}
