package io.zerohop.device.cuda;

import java.util.List;
import jcuda.driver.CUevent;
import jcuda.driver.CUevent_flags;
import jcuda.driver.CUstream;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;

/**
 * Streams beside a stream, for large copies by copy engines while the kernel makes the small ones.
 * One engine fills a link; several keep it full when one of the peers is busy with others: all to
 * all on four GPUs, 64 MiB a pair, one engine had 268 GB/s where the link gives 370. For one thread
 * at a time.
 */
final class EngineStreams implements AutoCloseable {
  private static final int COUNT = 4;

  private final CudaContext context;
  private final CUstream[] engines = new CUstream[COUNT];
  private final CUevent[] ended = new CUevent[COUNT];
  private final CUevent begun = new CUevent();
  private int used;

  EngineStreams(final CudaContext context) {
    this.context = context;
    createEvent(begun);
    for (int i = 0; i < COUNT; i++) {
      engines[i] = new CUstream();
      check(
          JCudaDriver.cuStreamCreate(engines[i], CUstream_flags.CU_STREAM_NON_BLOCKING),
          "cuStreamCreate");
      ended[i] = new CUevent();
      createEvent(ended[i]);
    }
  }

  private void createEvent(final CUevent event) {
    check(JCudaDriver.cuEventCreate(event, CUevent_flags.CU_EVENT_DISABLE_TIMING), "cuEventCreate");
  }

  /** Makes copies behind all that is in the stream now. */
  void copy(final CUstream stream, final List<CudaCopyBatch.EngineCopy> copies) {
    used = Math.min(COUNT, copies.size());
    check(JCudaDriver.cuEventRecord(begun, stream), "cuEventRecord");
    for (int i = 0; i < used; i++) {
      check(JCudaDriver.cuStreamWaitEvent(engines[i], begun, 0), "cuStreamWaitEvent");
    }
    int turn = 0;
    for (final CudaCopyBatch.EngineCopy copy : copies) {
      check(
          JCudaDriver.cuMemcpyDtoDAsync(
              Addresses.device(copy.destination()),
              Addresses.device(copy.source()),
              copy.length(),
              engines[turn++ % used]),
          "cuMemcpyDtoDAsync");
    }
    for (int i = 0; i < used; i++) {
      check(JCudaDriver.cuEventRecord(ended[i], engines[i]), "cuEventRecord");
    }
  }

  /** Lets the stream go on only when those copies are done. */
  void join(final CUstream stream) {
    for (int i = 0; i < used; i++) {
      check(JCudaDriver.cuStreamWaitEvent(stream, ended[i], 0), "cuStreamWaitEvent");
    }
  }

  private void check(final int status, final String call) {
    CudaStatus.check(status, call, context.toString());
  }

  @Override
  public void close() {
    for (int i = 0; i < COUNT; i++) {
      JCudaDriver.cuStreamDestroy(engines[i]);
      JCudaDriver.cuEventDestroy(ended[i]);
    }
    JCudaDriver.cuEventDestroy(begun);
  }
}
