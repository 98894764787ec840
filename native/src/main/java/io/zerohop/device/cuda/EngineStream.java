package io.zerohop.device.cuda;

import java.util.List;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;

/**
 * A stream beside a stream, for large copies by a copy engine while the kernel makes the small
 * ones. One is enough: one engine fills the link. For one thread at a time.
 */
final class EngineStream implements AutoCloseable {
  private final CudaContext context;
  private final CUstream engine = new CUstream();
  private final CUevent begun = new CUevent();
  private final CUevent ended = new CUevent();

  EngineStream(final CudaContext context) {
    this.context = context;
    check(
        JCudaDriver.cuStreamCreate(engine, CUstream_flags.CU_STREAM_NON_BLOCKING),
        "cuStreamCreate");
    for (final CUevent event : List.of(begun, ended)) {
      check(
          JCudaDriver.cuEventCreate(event, CUevent_flags.CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    }
  }

  /** Makes copies behind all that is in the stream now. */
  void copy(final CUstream stream, final List<CudaCopyBatch.EngineCopy> copies) {
    check(JCudaDriver.cuEventRecord(begun, stream), "cuEventRecord");
    check(JCudaDriver.cuStreamWaitEvent(engine, begun, 0), "cuStreamWaitEvent");
    for (final CudaCopyBatch.EngineCopy copy : copies) {
      check(
          JCudaDriver.cuMemcpyDtoDAsync(
              Addresses.device(copy.destination()),
              Addresses.device(copy.source()),
              copy.length(),
              engine),
          "cuMemcpyDtoDAsync");
    }
    check(JCudaDriver.cuEventRecord(ended, engine), "cuEventRecord");
  }

  /** Lets the stream go on only when those copies are done. */
  void join(final CUstream stream) {
    check(JCudaDriver.cuStreamWaitEvent(stream, ended, 0), "cuStreamWaitEvent");
  }

  private void check(final int status, final String call) {
    CudaStatus.check(status, call, context.toString());
  }

  @Override
  public void close() {
    JCudaDriver.cuStreamDestroy(engine);
    JCudaDriver.cuEventDestroy(begun);
    JCudaDriver.cuEventDestroy(ended);
  }
}
