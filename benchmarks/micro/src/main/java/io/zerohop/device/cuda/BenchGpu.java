package io.zerohop.device.cuda;

import io.zerohop.device.CopyBatch;
import io.zerohop.device.CopyStream;
import io.zerohop.device.Segment;
import java.util.ArrayList;
import java.util.List;
import jcuda.driver.CUevent;
import jcuda.driver.CUstream;
import jcuda.driver.CUstreamWaitValue_flags;
import jcuda.driver.CUstream_flags;
import jcuda.driver.JCudaDriver;
import org.agrona.concurrent.UnsafeBuffer;

/** One GPU of a benchmark: memory that is read, memory that is written to, and peers' memory. */
final class BenchGpu implements AutoCloseable {
  final int ordinal;
  final CudaContext context;
  final CudaDevice device;
  final Segment source;
  final Segment received;
  final List<Segment> mapped = new ArrayList<>();
  final CUstream plain = new CUstream();

  BenchGpu(final int ordinal, final long bytes) {
    this.ordinal = ordinal;
    this.context = CudaContext.of(ordinal);
    this.device = new CudaDevice(ordinal, CudaDevice.DEFAULT_MULTIPROCESSORS);
    this.source = device.allocate(bytes);
    this.received = device.allocate(bytes);
    context.enter();
    check(JCudaDriver.cuStreamCreate(plain, CUstream_flags.CU_STREAM_NON_BLOCKING));
  }

  /** Maps a peer's source by its descriptor, as another process would. */
  Segment map(final BenchGpu peer) {
    final Segment segment = device.map(peer.source.export(), "a peer");
    mapped.add(segment);
    return segment;
  }

  /** A stream that may occupy so many SMs. */
  CopyStream stream(final int multiprocessors) {
    return new CudaCopyStream(
        context, closed -> {}, "bench", context.kernels().best(), multiprocessors, false);
  }

  /** Milliseconds between two events around work on a stream of CUDA's own. */
  double millis(final CUstream stream, final Runnable work) {
    final CUevent begin = event();
    final CUevent end = event();
    check(JCudaDriver.cuEventRecord(begin, stream));
    work.run();
    check(JCudaDriver.cuEventRecord(end, stream));
    return elapsed(begin, end);
  }

  /**
   * Milliseconds that the GPU takes for a batch some times over. It is held up until the host has
   * submitted all of them, so that the host's time does not count.
   */
  double gatedMillis(final CopyStream stream, final CopyBatch batch, final int times) {
    final CUstream handle = ((CudaCopyStream) stream).handle();
    final CUevent begin = event();
    final CUevent end = event();
    final PinnedMemory gate = PinnedMemory.allocate(context, Long.BYTES);
    check(
        JCudaDriver.cuStreamWaitValue32(
            handle,
            Addresses.device(gate.address()),
            1,
            CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ));
    check(JCudaDriver.cuEventRecord(begin, handle));
    for (int i = 0; i < times; i++) {
      stream.submit(batch);
    }
    check(JCudaDriver.cuEventRecord(end, handle));
    new UnsafeBuffer(gate.address(), Long.BYTES).putIntVolatile(0, 1);
    final double millis = elapsed(begin, end);
    gate.close();
    return millis;
  }

  private CUevent event() {
    context.enter();
    final CUevent event = new CUevent();
    check(JCudaDriver.cuEventCreate(event, 0));
    return event;
  }

  /** Two events, the first of them recorded. */
  CUevent[] begin(final CopyStream stream) {
    final CUevent[] events = {event(), event()};
    check(JCudaDriver.cuEventRecord(events[0], ((CudaCopyStream) stream).handle()));
    return events;
  }

  void end(final CopyStream stream, final CUevent[] events) {
    context.enter();
    check(JCudaDriver.cuEventRecord(events[1], ((CudaCopyStream) stream).handle()));
  }

  double elapsed(final CUevent[] events) {
    context.enter();
    return elapsed(events[0], events[1]);
  }

  private double elapsed(final CUevent begin, final CUevent end) {
    check(JCudaDriver.cuEventSynchronize(end));
    final float[] millis = new float[1];
    check(JCudaDriver.cuEventElapsedTime(millis, begin, end));
    JCudaDriver.cuEventDestroy(begin);
    JCudaDriver.cuEventDestroy(end);
    return millis[0];
  }

  void copy(final long source, final long destination, final long bytes) {
    check(
        JCudaDriver.cuMemcpyDtoDAsync(
            Addresses.device(destination), Addresses.device(source), bytes, plain));
  }

  static void check(final int status) {
    CudaStatus.check(status, "driver call", "benchmark");
  }

  @Override
  public void close() {
    mapped.forEach(Segment::close);
    source.close();
    received.close();
    context.enter();
    JCudaDriver.cuStreamDestroy(plain);
    device.close();
  }
}
