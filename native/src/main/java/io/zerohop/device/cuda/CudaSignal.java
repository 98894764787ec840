package io.zerohop.device.cuda;

import io.zerohop.device.Signal;
import io.zerohop.device.WaitException;
import io.zerohop.device.WaitException.Reason;
import io.zerohop.device.cuda.CudaDevice.DeviceWord;
import io.zerohop.device.posix.Deadline;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * A signal word in GPU memory. Streams wait for it and raise it without the host; what the host
 * does here costs some ten microseconds a call.
 *
 * <p>A raise by the host reads first and writes then: each signal has one raiser at a time, the
 * owner of what it stands for.
 */
final class CudaSignal implements Signal, DeviceWord {
  private static final int ABORT_OFFSET = 4;
  private static final long FIRST_NAP_NANOS = 5_000;
  private static final long LONGEST_NAP_NANOS = 1_000_000;

  private final CudaSegment segment;
  private final HostAccess host;
  private final long address;

  CudaSignal(final CudaSegment segment, final HostAccess host, final long offset) {
    segment.checkOpen();
    if (offset < 0 || offset % BYTES != 0 || offset > segment.bytes() - BYTES) {
      throw new IllegalArgumentException(
          "signal at offset " + offset + " of " + segment + ": not aligned or outside");
    }
    this.segment = segment;
    this.host = host;
    this.address = segment.address() + offset;
  }

  @Override
  public long address() {
    segment.checkOpen();
    return address;
  }

  private long words() {
    return host.read(address());
  }

  @Override
  public int epoch() {
    return (int) words();
  }

  @Override
  public int aborted() {
    return (int) (words() >>> Integer.SIZE);
  }

  @Override
  public void raise(final int epoch) {
    if (!reached(epoch)) {
      host.write(address(), epoch);
    }
  }

  @Override
  public void abort(final int reason) {
    host.write(address() + ABORT_OFFSET, reason);
  }

  @Override
  public void await(final int epoch, final Duration limit, final BooleanSupplier cancelled) {
    final Deadline deadline = Deadline.in(limit);
    long nap = FIRST_NAP_NANOS;
    while (true) {
      final long words = words();
      if (Signal.atLeast((int) words, epoch)) {
        return;
      }
      final int reason = (int) (words >>> Integer.SIZE);
      if (reason != 0) {
        throw failed(Reason.ABORTED, epoch, words, "was aborted with " + reason);
      }
      if (deadline.isOver()) {
        throw failed(Reason.TIMEOUT, epoch, words, "took longer than " + limit);
      }
      if (cancelled.getAsBoolean() || Thread.currentThread().isInterrupted()) {
        throw failed(Reason.CANCELLED, epoch, words, "was cancelled");
      }
      LockSupport.parkNanos(nap);
      nap = Math.min(2 * nap, LONGEST_NAP_NANOS);
    }
  }

  private WaitException failed(
      final Reason reason, final int epoch, final long words, final String what) {
    return new WaitException(
        reason,
        "the wait for epoch " + epoch + " of " + this + ", now " + (int) words + ", " + what);
  }

  @Override
  public String toString() {
    return "signal at " + Long.toHexString(address) + " of " + segment;
  }
}
