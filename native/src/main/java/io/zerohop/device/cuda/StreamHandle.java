package io.zerohop.device.cuda;

import io.zerohop.device.WaitException;
import io.zerohop.device.posix.Deadline;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntSupplier;
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

  /**
   * Streams beside a stream, for large copies by copy engines while the kernel makes the small
   * ones. One engine fills a link; several keep it full when one of the peers is busy with others:
   * all to all on four GPUs, 64 MiB a pair, one engine had 268 GB/s where the link gives 370. For
   * one thread at a time.
   */
  static final class EngineStreams implements AutoCloseable {
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
      check(
          JCudaDriver.cuEventCreate(event, CUevent_flags.CU_EVENT_DISABLE_TIMING), "cuEventCreate");
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

  /** The host's wait for a stream: a short spin, then naps. Never without an end. */
  static final class StreamWait {
    private static final int SPINS = 20;
    private static final long FIRST_NAP_NANOS = 10_000;
    private static final long LONGEST_NAP_NANOS = 500_000;

    private StreamWait() {}

    /**
     * Waits until the driver says that work is done.
     *
     * @param query asks it, and gives the status of the answer
     * @throws WaitException (TIMEOUT, CANCELLED when the thread is interrupted)
     * @throws io.zerohop.device.ZerohopException FATAL if the work ended in an error of the context
     */
    static void until(
        final IntSupplier query, final Duration limit, final String what, final String where) {
      final Deadline deadline = Deadline.in(limit);
      long nap = FIRST_NAP_NANOS;
      for (int spin = 0; !isDone(query, deadline, limit, what, where); spin++) {
        if (Thread.currentThread().isInterrupted()) {
          throw new WaitException(
              WaitException.Reason.CANCELLED,
              where + ": the wait for " + what + " was interrupted");
        }
        nap = pause(spin, nap);
      }
    }

    /**
     * The same even if the thread is interrupted, for work whose memory is freed or used again
     * next. The interrupt stays set.
     */
    static void untilDone(
        final IntSupplier query, final Duration limit, final String what, final String where) {
      final Deadline deadline = Deadline.in(limit);
      boolean interrupted = false;
      try {
        long nap = FIRST_NAP_NANOS;
        for (int spin = 0; !isDone(query, deadline, limit, what, where); spin++) {
          interrupted |= Thread.interrupted(); // It would end each nap at once.
          nap = pause(spin, nap);
        }
      } finally {
        if (interrupted) {
          Thread.currentThread().interrupt();
        }
      }
    }

    private static boolean isDone(
        final IntSupplier query,
        final Deadline deadline,
        final Duration limit,
        final String what,
        final String where) {
      final int status = CudaStatus.observe(query.getAsInt());
      if (status != CudaStatus.SUCCESS && status != CudaStatus.NOT_READY) {
        throw CudaStatus.failure(status, what, where);
      }
      if (status == CudaStatus.NOT_READY && deadline.isOver()) {
        throw new WaitException(
            WaitException.Reason.TIMEOUT, where + ": " + what + " was not done within " + limit);
      }
      return status == CudaStatus.SUCCESS;
    }

    /** Spins first, then naps; returns how long to nap next. */
    private static long pause(final int spin, final long nap) {
      if (spin < SPINS) {
        Thread.onSpinWait();
        return nap;
      }
      LockSupport.parkNanos(nap);
      return Math.min(2 * nap, LONGEST_NAP_NANOS);
    }
  }
}
