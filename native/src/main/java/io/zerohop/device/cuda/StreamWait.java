package io.zerohop.device.cuda;

import io.zerohop.device.WaitException;
import io.zerohop.device.posix.Deadline;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import jcuda.driver.CUstream;
import jcuda.driver.JCudaDriver;

/** The host's wait for a stream: a short spin, then naps. Never without an end. */
final class StreamWait {
  private static final int SPINS = 200;
  private static final long FIRST_NAP_NANOS = 20_000;
  private static final long LONGEST_NAP_NANOS = 500_000;

  private StreamWait() {}

  /**
   * Waits until all work of a stream is done.
   *
   * @throws WaitException (TIMEOUT, CANCELLED when the thread is interrupted)
   * @throws io.zerohop.device.ZerohopException FATAL if the work ended in an error of the context
   */
  static void until(
      final CUstream stream,
      final Deadline deadline,
      final Duration limit,
      final String what,
      final String where) {
    long nap = FIRST_NAP_NANOS;
    for (int spin = 0; ; spin++) {
      final int status = CudaStatus.observe(JCudaDriver.cuStreamQuery(stream));
      if (status == CudaStatus.SUCCESS) {
        return;
      }
      if (status != CudaStatus.NOT_READY) {
        throw CudaStatus.failure(status, what, where);
      }
      if (deadline.isOver()) {
        throw new WaitException(
            WaitException.Reason.TIMEOUT, where + ": " + what + " was not done within " + limit);
      }
      if (Thread.currentThread().isInterrupted()) {
        throw new WaitException(
            WaitException.Reason.CANCELLED, where + ": the wait for " + what + " was interrupted");
      }
      if (spin < SPINS) {
        Thread.onSpinWait();
      } else {
        LockSupport.parkNanos(nap);
        nap = Math.min(2 * nap, LONGEST_NAP_NANOS);
      }
    }
  }
}
