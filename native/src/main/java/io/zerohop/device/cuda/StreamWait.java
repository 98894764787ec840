package io.zerohop.device.cuda;

import io.zerohop.device.WaitException;
import io.zerohop.device.posix.Deadline;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntSupplier;

/** The host's wait for a stream: a short spin, then naps. Never without an end. */
final class StreamWait {
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
            WaitException.Reason.CANCELLED, where + ": the wait for " + what + " was interrupted");
      }
      nap = pause(spin, nap);
    }
  }

  /**
   * The same even if the thread is interrupted, for work whose memory is freed or used again next.
   * The interrupt stays set.
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
